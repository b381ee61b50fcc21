//! Messages decoded straight into Arrow's buffers: a [`batch`] takes messages and ends as buffers.
//! What the schema does not ask for is skipped by its length.
//!
//! - `calls` are method calls, `table` the rows of one table, `history` the history as a column;
//! - `column` is values of any kind, and the columns by name in it; `encoded_name` finds names without
//!   decoding them;
//! - `scalars` converts single values where nothing is lost;
//! - `arrays` are Arrow's buffers, while they grow.

pub(super) mod arrays;
pub mod batch;
mod calls;
pub(super) mod column;
mod encoded_name;
pub(super) mod history;
mod scalars;
mod table;

pub use arrays::Array;
