//! Where every byte of a Vanilla Chronicle is (`docs/vanilla.md`): pure arithmetic, no I/O.

pub mod cycle;
pub mod digits;
pub mod entry;
pub mod fields;
pub mod index;
pub mod names;
pub mod object;
pub mod parse;
pub mod record;
