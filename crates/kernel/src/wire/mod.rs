//! Values as the bytes of a message and back (`docs/format.md` §8).
//!
//! - [`codes`] names the codes of tokens, [`cursor`] reads bytes, [`tokens`] appends them, [`latin1`] is
//!   Java's encoding of names;
//! - [`token`] reads a message token by token, [`writer`] appends tokens;
//! - [`convert`] makes of a value what a declared type asks for;
//! - [`fault`] says what is wrong with a message, and where;
//! - [`history`] tells which messages led to a message;
//! - [`yaml`] shows a message as text, [`hex`] one that is none, [`parse`] reads text; [`json`] does both;
//! - [`summary`] tells what is in a message in a few words;
//! - `text` is what text is made of;
//! - [`reader`] looks at whole messages; [`temporal`] knows dates and times, [`compress`] blobs;
//! - [`columns`] makes Arrow's columns of messages, [`rows`] messages of columns;
//! - [`topic`] finds messages by the key in front of them.

pub mod codes;
pub mod columns;
pub mod compress;
pub mod convert;
pub mod cursor;
pub mod fault;
pub mod fieldless;
pub mod hex;
pub mod history;
pub mod json;
pub mod latin1;
pub mod number;
pub mod parse;
pub mod reader;
pub mod rows;
pub mod summary;
pub mod temporal;
pub(crate) mod text;
pub mod token;
pub mod tokens;
pub mod topic;
pub mod writer;
pub mod yaml;

/// Nesting deeper than this is refused, in both directions.
pub const DEPTH_MAX: usize = 64;
