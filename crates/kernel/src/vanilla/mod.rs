//! Vanilla Chronicle.
pub mod format;
