//! `make fuzz`: see `requests::requests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::requests::requests(data));
