//! Reading a queue: [`tailer`] is the handle, `scan` what its steps are asked and how far they get,
//! `position` the state machine that moves it,
//! `stored_position` a named tailer's place in the table store; `stall` says when reading waits
//! although later messages are there, [`missing`] what happens when messages were deleted,
//! [`resume`] where to continue after the last message of an output queue, and [`buffer`] how messages
//! are read that are on their way into the queue. [`acknowledged`] holds back what no replica has. [`digest`] says whether two queues hold the same.

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
