//! Writing at the end of a queue: [`appender`] is the handle, `end` the place it writes at, `sync`
//! what it made durable, `taken_back` the positions past a lost tail, `committer` the thread that does so, `times` the append times it keeps,
//! [`pretoucher`] prepares files ahead of it.

pub mod appender;
pub mod committer;
pub(crate) mod end;
pub mod pretoucher;
pub(crate) mod sync;
pub(crate) mod taken_back;
pub(crate) mod times;
