//! `make fuzz`: see `targets::shown`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::targets::shown(data));
