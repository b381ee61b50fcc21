//! `make fuzz`: see `indexed::indexed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::indexed::indexed(data));
