//! Roll files whose first header is not ready: whether one was only begun, or holds messages.
//!
//! The creator of a file publishes its first header before anyone appends. A file with messages
//! after a header that is not ready was therefore damaged: it is neither discarded nor skipped.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::roll_file::{self, Known, RollFile, View};
use super::walk::{Met, Walk};
use crate::chronicle::format::document::{self, Header};
use crate::chronicle::format::index;
use crate::chronicle::format::store::{self, StoreLayout};
use crate::memory::window::Window;
use crate::os::files::{self, Access};
use crate::{Error, Result};

/// How far into a file to search for an index array.
const SEARCHED: usize = 640 << 10;
/// An upper bound for the first document of a roll file.
const HEADER_MAX: u64 = 1024;
/// Bytes of a header, and the alignment of documents.
const WORD: usize = 4;

/// Whether messages lie after the first header of a file that is not ready. Its index arrays are
/// assumed to have `index_count` slots unless the file states a number.
pub fn holds_messages(path: &Path, index_count: u32) -> Result<bool> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(false);
    };
    let window = Window::new(path, file, false)?;
    if roll_file::read_layout(&window).is_ok_and(|layout| layout.is_some()) {
        return Ok(false); // it was finished meanwhile
    }
    let mut start = vec![0; SEARCHED];
    let found = window.read_at(&mut start, 0)?;
    start.truncate(found);
    let header = start.split_first_chunk::<WORD>().and_then(|(_, body)| store::parse(body));
    let count = header.as_ref().map_or(index_count, |layout| layout.index_count);
    let layout = header.unwrap_or(StoreLayout { aligned: true, ..StoreLayout::default() });
    let mut view = View::new(Arc::new(RollFile::new(0, window, layout)));
    Ok(has_message_after_array(&mut view, &start)? || has_bytes_after_arrays(&view, count)?)
}

/// The error of a file with messages after a header that is not ready.
#[must_use]
pub fn no_header(path: &Path) -> Error {
    not_ready("a roll file that holds messages has no complete header", path)
}

/// The error of a first header that should be ready.
#[must_use]
pub fn not_ready(what: &'static str, path: &Path) -> Error {
    let found = roll_file::first_bytes(path).unwrap_or_else(|error| error.to_string());
    Error::corrupt(what, path, 0, found, "the length of a header document")
}

fn has_message_after_array(view: &mut View, start: &[u8]) -> Result<bool> {
    let step = if view.file().layout.aligned { WORD } else { 1 };
    let array = (0..start.len()).step_by(step).find(|at| is_array(&start[*at..]));
    array.map_or(Ok(false), |at| is_message_from(view, at as u64))
}

/// Whether a document of index positions starts here.
fn is_array(bytes: &[u8]) -> bool {
    let Some((word, payload)) = bytes.split_first_chunk::<WORD>() else { return false };
    if !matches!(document::parse(u32::from_le_bytes(*word)), Header::Meta(_)) {
        return false;
    }
    index::is_array(payload)
}

fn is_message_from(view: &mut View, position: u64) -> Result<bool> {
    match Walk::from(view, Some(Known { position, sequence: 0 })).next_message() {
        Ok(found) => Ok(matches!(found, Met::Message(_))),
        Err(Error::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file has nonzero bytes after the end of the first index arrays of a new file.
fn has_bytes_after_arrays(view: &View, index_count: u32) -> Result<bool> {
    let arrays = 2 * (index::slots_len(index_count) + index::PREAMBLE_MAX as u64);
    let from = (HEADER_MAX + arrays).next_multiple_of(files::PAGE);
    let mut found = false;
    let looked = files::each_used_page(view.file().window.file(), from, |_, _| {
        found = true;
        Err(io::ErrorKind::Interrupted.into()) // stops at the first page found
    });
    match looked {
        Err(error) if !found => Err(Error::io("cannot look at", view.file().path(), error)),
        _ => Ok(found),
    }
}
