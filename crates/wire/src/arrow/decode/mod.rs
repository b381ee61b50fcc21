//! Decodes messages into Arrow buffers: a [`batch`] takes messages and finishes as buffers.
//! Values that are not in the schema are skipped by their length.
//!
//! - `calls` decodes method calls, `table` is the rows of one table, `history` the history column;
//! - `column` is a column of any kind, with its nested columns by name; `encoded_name` matches
//!   names without decoding them;
//! - `scalars` converts single values losslessly;
//! - `arrays` are the growing Arrow buffers.

pub(super) mod arrays;
pub mod batch;
mod calls;
pub(super) mod column;
mod encoded_name;
pub(super) mod history;
mod scalars;
mod table;

pub use arrays::Array;
