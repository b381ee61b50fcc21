//! BinaryWire, the encoding of Chronicle Queue's messages (`docs/format.md` §8): bytes to values and
//! back. No I/O, no `unsafe`, and nothing of queues or of Python.
//!
//! - [`codes`] is the table of codes, [`reader`] reads tokens, [`writer`] appends them;
//! - [`number`], [`temporal`], [`latin1`] and [`compress`] know numbers, dates and times, names and
//!   compressed blobs; [`convert`] makes of a value what a declared type asks for;
//! - [`message`] looks at a message as a whole; [`history`] says which messages led to one, [`topic`]
//!   finds messages by their routing key, [`fieldless`] is the form without field names;
//! - [`text`] shows messages as YAML, JSON or hexadecimal, and parses YAML and JSON;
//! - [`arrow`] makes Arrow columns of messages, and messages of columns;
//! - [`WireError`] says what is wrong with a message, and where.
#![forbid(unsafe_code)]

pub mod arrow;
pub mod codes;
pub mod compress;
pub mod convert;
mod error;
pub mod fieldless;
pub mod history;
pub mod latin1;
pub mod message;
pub mod number;
pub mod reader;
pub mod temporal;
pub mod text;
pub mod topic;
pub mod writer;

pub use error::{Result, WireError};

/// Nesting deeper than this is refused, in both directions.
pub const DEPTH_MAX: usize = 64;
