//! Indexed Chronicle, the other type of Java Chronicle 3: `NAME.index` and `NAME.data`
//! (`docs/vanilla.md`). Read only.
//!
//! - [`IndexedQueue`] is the two files, [`IndexedTailer`] reads from them;
//! - `line` says where every byte of the index is, `reader` finds entries and messages.

mod line;
mod queue;
mod reader;
mod tailer;

pub use queue::IndexedQueue;
pub use tailer::IndexedTailer;
