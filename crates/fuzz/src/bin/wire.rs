//! `make fuzz`: see `targets::wire`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::targets::wire(data));
