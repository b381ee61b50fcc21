//! `make fuzz`: see `targets::index`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::targets::index(data));
