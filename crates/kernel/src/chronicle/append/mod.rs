//! Writing at the end of a queue: [`appender`] is the handle, `end` the end of the queue while the
//! write lock is held, `tail` the file that the end lies in, `lost_tail` the named tailers of a
//! file that lost its tail, `runs` appends of many messages, `older` ends the files of older
//! cycles, `of_sink` appends to a replica, `append_times` and `append_checksums` write their side
//! files, `sync` decides which files a sync covers, [`committer`] is the thread that syncs, and
//! [`pretoucher`] prepares files ahead of appends.

mod append_checksums;
pub(crate) mod append_times;
pub mod appender;
pub mod committer;
pub(crate) mod end;
pub(crate) mod lost_tail;
mod of_sink;
pub(crate) mod older;
pub mod pretoucher;
pub(crate) mod runs;
pub(crate) mod sync;
pub(crate) mod tail;
