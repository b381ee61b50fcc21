//! The Python classes for the kernel's handles: [`queue`], [`appender`],
//! [`tailer`], and their documents [`read_document`], [`write_document`] (with the classes that
//! read and write them value by value) and [`excerpt`]; [`dump`], [`clock`] and [`roll_cycle`].
//!
//! [`pretoucher`] prepares files ahead of appenders, [`ring`] buffers asynchronous appends, and
//! [`file_events`] reports opened and closed files to a listener. [`payload`] is a message passed
//! in by the caller, [`column`] a column of messages. [`scan`] is a long read that checks for
//! signals, [`spin`] a busy wait, [`waits`] waits for messages, [`promise`] for replicas.
//! [`direction`] is the read direction, [`documents`] a source of documents, [`taken`] a document
//! being decoded, and [`sender`] a destination other than files. [`decoding`] converts messages to
//! objects. [`render`] and [`render_columns`] format a batch for the command line. [`raw_tailer`]
//! is shared by the tailers of formats whose messages are raw bytes, and [`queue_options`] are the
//! options of a queue.

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
