//! Encodes Arrow columns as messages, one per row. The columns are borrowed in place, and the
//! messages are appended to one buffer.
//!
//! - `buffers` reads Arrow's buffers, `column` encodes a value of any kind as a token;
//! - `temporal` formats dates, times and decimals; [`encoder`] converts rows to messages.

mod buffers;
mod column;
pub mod encoder;
mod temporal;

pub use buffers::Buffers;
