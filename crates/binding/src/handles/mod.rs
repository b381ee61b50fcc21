//! The Python classes for the kernel's handles: [`queue`], [`appender`],
//! [`tailer`], and their documents [`read_document`], [`write_document`] (with the classes that read
//! and write them value by value) and [`excerpt`]; [`dump`], [`clock`] and [`roll_cycle`].
//!
//! [`pretoucher`] prepares files ahead of appenders, [`ring`] is what asynchronous ones put messages
//! into, and [`file_events`] what a listener for files waits on. [`payload`] is what a caller passes
//! as a message, [`column`] a column of them, [`scan`] a long read that checks for signals, [`spin`] a
//! wait without a pause, [`waits`] waits for messages, [`promise`] for replicas, [`direction`] where
//! reads go, [`documents`] where documents come from, [`taken`] one that is being decoded, and
//! [`sender`] where they go if not to files. [`decoding`] makes objects of messages. [`render`]
//! and [`render_columns`] are what the command line prints of a batch. [`raw_tailer`] is what the
//! tailers of formats whose messages are raw bytes share, and [`queue_options`] what a queue is opened with.

pub mod appender;
pub mod clock;
pub mod column;
pub mod decoding;
pub mod direction;
pub mod documents;
pub mod dump;
pub mod excerpt;
pub mod file_events;
pub mod payload;
pub mod pretoucher;
pub mod promise;
pub mod queue;
pub mod queue_options;
pub mod raw_tailer;
pub mod read_document;
pub mod render;
pub mod render_columns;
pub mod ring;
pub mod roll_cycle;
pub mod scan;
pub mod sender;
pub mod spin;
pub mod tailer;
pub mod taken;
pub mod waits;
pub mod write_document;
