//! `make fuzz`: see `vanilla::vanilla`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::vanilla::vanilla(data));
