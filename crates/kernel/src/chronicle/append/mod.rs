//! Writing at the end of a queue: [`appender`] is the handle, `end` the end of the queue while the
//! write lock is held, `tail` the file it lies in, `lost_tail` the named tailers of a file that lost
//! its own, `runs` appends of many messages, `older` the files of older cycles, `of_sink` what the sink of a replica does, `append_times` the side file of append times,
//! `append_checksums` that of checksums, `sync` what a sync covers, [`committer`] the thread that syncs, [`pretoucher`] what prepares files ahead of appends.

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
