//! `make fuzz`: see `group::group`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::group::group(data));
