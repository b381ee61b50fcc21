//! Writing at the end of a queue: [`appender`] is the handle, `end` the place it writes at, `sync`
//! what it made durable.

pub mod appender;
pub(crate) mod end;
pub(crate) mod sync;
