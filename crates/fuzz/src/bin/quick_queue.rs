//! `make fuzz`: see `quick_queue::quick_queue`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quire_fuzz::quick_queue::quick_queue(data));
