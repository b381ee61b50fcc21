//! Reading a queue: [`tailer`] is the handle, `scan` the requests and results of its steps,
//! `position` the state machine that moves it, `stored_position` a named tailer's position in the
//! table store; `stall` says when reading waits although there are later messages, [`missing`]
//! handles deleted messages, [`resume`] finds where to continue after the last message of an output
//! queue, and [`buffer`] reads messages that are on their way into the queue. [`acknowledged`]
//! holds back messages that no replica has. [`digest`] says whether two queues hold the same
//! messages.

pub mod acknowledged;
pub mod buffer;
pub mod digest;
pub mod missing;
pub(crate) mod position;
pub mod resume;
pub(crate) mod scan;
pub(crate) mod stall;
pub mod stored_position;
pub mod tailer;
