//! Messages decoded straight into Arrow's buffers: a [`plan`] says what is wanted, a [`batch`] takes
//! messages and ends as buffers. What is not wanted is stepped over by its length.
//!
//! - `arrays` are buffers that grow, `column` is values of any kind, `fields` are columns by name;
//! - `table` makes rows of them; `scalars` converts single values, where nothing is lost on the way;
//! - [`beside`] is what does not come from the values: a message's bytes, its sub-topic;
//! - [`infer`] finds out what the messages of a queue look like.

mod arrays;
pub mod batch;
pub mod beside;
mod calls;
mod column;
mod fields;
mod head;
mod history;
pub mod infer;
pub mod plan;
mod scalars;
mod table;

pub use arrays::Array;
