//! `make fuzz`: see `threads::threads`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::threads::threads(data));
