//! Messages as text and back: [`yaml`] and [`yaml_parser`], [`json`], [`hex`] for bytes that are no
//! message, and [`summary`] for a few words.
//!
//! What text is made of: [`layout`] puts lines and commas, [`escape`] quotes strings, [`number`] and
//! [`uuid`] show values; [`source`] is text that is parsed, [`scalar`] a value in it.

pub mod escape;
pub mod hex;
pub mod json;
pub mod layout;
pub mod number;
pub mod scalar;
pub mod source;
pub mod summary;
pub mod uuid;
pub mod yaml;
pub mod yaml_parser;

use crate::compress::UNPACKED_MAX;

/// What a compressed blob may become when it is shown: text shrinks to a fifth or so.
#[must_use]
pub fn unpacked_max(packed: &[u8]) -> usize {
    const ALWAYS: usize = 1 << 20;
    const TIMES: usize = 64;
    (ALWAYS + TIMES * packed.len()).min(UNPACKED_MAX)
}
