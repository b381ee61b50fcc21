//! Where is the byte? On-disk facts, one module per structure (`docs/format.md`): no I/O, no
//! atomics, no `unsafe`.

pub mod blocks;
pub mod document;
pub mod index;
pub mod roll_cycle;
mod roll_cycle_table;
pub mod store;
pub mod table;
