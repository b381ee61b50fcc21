//! What text documents are made of: how lines are laid out, strings quoted and numbers shown.

pub mod escape;
pub mod layout;
pub mod number;
pub mod scalar;
pub mod source;
pub mod uuid;

use super::compress::UNPACKED_MAX;

/// What a compressed blob may become when it is shown: text shrinks to a fifth or so.
#[must_use]
pub fn unpacked_max(packed: &[u8]) -> usize {
    const ALWAYS: usize = 1 << 20;
    const TIMES: usize = 64;
    (ALWAYS + TIMES * packed.len()).min(UNPACKED_MAX)
}
