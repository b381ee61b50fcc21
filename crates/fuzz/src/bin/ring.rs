//! `make fuzz`: see `ring::ring`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::ring::ring(data));
