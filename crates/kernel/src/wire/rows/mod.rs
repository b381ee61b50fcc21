//! Arrow's columns as messages, one for each row: [`super::columns`] the other way round. The columns
//! are borrowed where they lie, and the messages end up one behind the other in one buffer.
//!
//! - `borrowed` reads Arrow's buffers, `column` appends a value of any kind as a token;
//! - `moments` writes dates, times and decimals as text; [`encoder`] makes messages of rows.

mod borrowed;
mod column;
pub mod encoder;
mod moments;

pub use borrowed::Buffers;
