//! `make fuzz`: see `columns::columns`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::columns::columns(data));
