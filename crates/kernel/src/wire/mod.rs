//! Values as the bytes of a message and back (`docs/format.md` §8). The few that a journal without
//! typed messages needs: text, and maps of scalars, strings, bytes, lists and maps.

pub mod reader;
pub mod writer;

/// Nesting deeper than this is refused, in both directions.
pub const DEPTH_MAX: usize = 64;
