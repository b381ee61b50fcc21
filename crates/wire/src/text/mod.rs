//! Messages as text and back: [`yaml`] and [`yaml_parser`], [`json`], [`hex`] for other
//! bytes, and [`summary`] for a short form. [`rows`] are Arrow columns as text, and [`terminal`]
//! finds characters that a terminal must not be shown.
//!
//! Shared parts: [`layout`] writes separators, [`escape`] quotes strings, [`number`] and
//! [`uuid`] format values, [`source`] is a text being parsed, [`scalar`] a value in it.

pub mod escape;
pub mod hex;
pub mod json;
pub mod layout;
pub mod number;
pub mod rows;
pub mod scalar;
pub mod source;
pub mod summary;
pub mod terminal;
pub mod uuid;
pub mod yaml;
pub mod yaml_parser;

use crate::compress::UNPACKED_MAX;

/// Limit on the decompressed size of a blob that is printed: text compresses to about a fifth.
#[must_use]
pub fn unpacked_max(packed: &[u8]) -> usize {
    const ALWAYS: usize = 1 << 20;
    const TIMES: usize = 64;
    (ALWAYS + TIMES * packed.len()).min(UNPACKED_MAX)
}
