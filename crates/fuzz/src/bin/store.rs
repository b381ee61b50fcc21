//! `make fuzz`: see `targets::store`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::targets::store(data));
