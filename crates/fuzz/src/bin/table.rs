//! `make fuzz`: see `targets::table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::targets::table(data));
