//! The state of a handle, as far as it is known without waiting and without file access.

/// The state of a handle that another thread may be using.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleState {
    /// It belongs to the parent process, whose threads may have been using it at the fork.
    Forked,
    /// Another thread is using it.
    Busy,
    /// Its index; None if it has none yet.
    At(Option<i64>),
}
