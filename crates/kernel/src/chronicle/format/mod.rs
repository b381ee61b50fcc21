//! Where is the byte? On-disk facts, one module per structure (`docs/format.md`): no I/O, no
//! atomics, no `unsafe`.

pub mod append_checksums;
pub mod batch;
pub mod blocks;
pub mod document;
pub mod index;
pub mod roll_cycle;
pub mod seek_table;
pub mod store;
pub mod table;
pub mod time_index;
