//! `make fuzz`: see `packed::packed_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::packed::packed_message(data));
