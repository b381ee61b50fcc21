//! BinaryWire, the encoding of Chronicle Queue's messages (`docs/format.md` §8), and conversions.
//! No I/O, no `unsafe`, and no dependency on queues or Python.
//!
//! - [`codes`] is the code table, [`reader`] reads tokens, [`writer`] appends them;
//! - [`number`], [`temporal`], [`latin1`] and [`compress`] handle numbers, dates and times, names,
//!   compressed blobs; [`convert`] converts a value to a declared type;
//! - [`message`] handles a message as a whole; [`history`] is the origin of a message, [`topic`]
//!   filters messages by routing key, [`fieldless`] drops field names, [`explain`] says what each
//!   byte means;
//! - [`text`] prints messages as YAML, JSON or hexadecimal, and parses YAML and JSON;
//! - [`arrow`] converts messages to Arrow columns, and columns to messages;
//! - [`requests`] parses requests from Redis clients;
//! - [`WireError`] states what is wrong with a message, and where.
#![forbid(unsafe_code)]

pub mod arrow;
pub mod codes;
pub mod compress;
pub mod convert;
mod error;
pub mod explain;
pub mod fieldless;
pub mod history;
pub mod latin1;
pub mod message;
pub mod number;
pub mod out;
pub mod reader;
pub mod requests;
pub mod temporal;
pub mod text;
pub mod topic;
pub mod writer;

pub use error::{Result, WireError};

/// Deeper nesting is rejected, on reading and writing.
pub const DEPTH_MAX: usize = 64;
