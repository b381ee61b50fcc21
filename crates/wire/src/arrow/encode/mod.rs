//! Arrow's columns as messages, one for each row. The columns are borrowed where they are, and the
//! messages are appended to one buffer.
//!
//! - `buffers` reads Arrow's buffers, `column` appends a value of any kind as a token;
//! - `temporal` writes dates, times and decimals as text; [`encoder`] makes messages of rows.

mod buffers;
mod column;
pub mod encoder;
mod temporal;

pub use buffers::Buffers;
