//! `make fuzz`: see `targets::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::targets::text(data));
