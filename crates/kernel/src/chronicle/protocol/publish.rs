//! Making one document visible: step 8 of an append (`append/end.rs`). The order is the
//! protocol:
//!
//! - 8a. check the lock word: the lock may have been taken by force while this process was stopped;
//! - 8b. store the payload after a header that is still 0;
//! - 8c. store eight zero bytes at its end, so that the next header reads 0;
//! - 8d. check the lock word again;
//! - 8e. CAS the header from 0 to the length, with release.
//!
//! A crash before 8e leaves bytes after a 0 header, which the next writer overwrites. A crash after
//! it leaves a message that is visible and not yet counted: the next writer's walk finds it.
//!
//! A bulk write does 8a to 8c for a run of documents, with plain headers for all but the first,
//! then 8d and 8e for the first one: that header shows the whole run.

use super::lock::guard::WriteGuard;
use crate::chronicle::format::document::{
    END_OF_DATA, EOF_DECORATION, HEADER_LEN, NOT_INITIALIZED, TAIL_ZEROS,
};
use crate::memory::Cells;
use crate::probe::fault::step;

/// Why a document was not published. The bytes after the header may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPublished {
    /// The write lock was taken by force; its word is this.
    LockLost(u64),
    /// The header is not 0: another writer wrote here without the lock.
    HeaderTaken(u32),
}

/// What to publish: a token, then the bytes it introduces. Either may be empty.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// A few leading bytes, such as a text value's length.
    pub head: &'a [u8],
    /// The rest.
    pub body: &'a [u8],
    /// Zero bytes after both, for the slots of an index array.
    pub zeros: u64,
}

impl<'a> Payload<'a> {
    /// A payload of these bytes alone.
    #[must_use]
    pub const fn new(body: &'a [u8]) -> Self {
        Self { head: &[], body, zeros: 0 }
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.head.len() as u64 + self.body.len() as u64 + self.zeros
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Publishes `payload` at `position` under `header_word`. The range up to eight bytes after the
/// payload is writable.
#[inline]
pub fn publish(
    cells: &Cells,
    position: u64,
    payload: Payload<'_>,
    header_word: u32,
    guard: &WriteGuard<'_>,
) -> Result<(), NotPublished> {
    store(cells, position, payload, guard)?;
    show(cells, position, header_word, guard)
}

/// Steps 8a to 8c for a later document of a run, whose first header is still 0 and publishes all:
/// also stores its own header.
#[inline]
pub fn store_after(
    cells: &Cells,
    position: u64,
    payload: Payload<'_>,
    header_word: u32,
    guard: &WriteGuard<'_>,
) -> Result<(), NotPublished> {
    store(cells, position, payload, guard)?;
    cells.store_header_plain(position, header_word, step!("publish.run-header.store"));
    Ok(())
}

/// The zeros stored after a payload: padding, and headers that read 0.
const NO_HEADERS: [u8; 8] = [0; 8];
const _: () = assert!(TAIL_ZEROS == NO_HEADERS.len() as u64);

/// Steps 8a to 8c.
#[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
#[inline(always)]
pub fn store(
    cells: &Cells,
    position: u64,
    payload: Payload<'_>,
    guard: &WriteGuard<'_>,
) -> Result<(), NotPublished> {
    guard.check().map_err(NotPublished::LockLost)?;
    copy(cells, position, payload);
    Ok(())
}

/// Steps 8b and 8c.
#[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
#[inline(always)]
fn copy(cells: &Cells, position: u64, payload: Payload<'_>) {
    let body = position + HEADER_LEN + payload.head.len() as u64;
    let end = body + payload.body.len() as u64;
    if !payload.head.is_empty() {
        cells.copy_in_plain(position + HEADER_LEN, payload.head, step!("publish.payload.store"));
    }
    cells.copy_in_plain(body, payload.body, step!("publish.payload.store"));
    if payload.zeros > 0 {
        cells.zero_plain(end, payload.zeros, step!("publish.zeros.store"));
    }
    cells.copy_in_plain(end + payload.zeros, &NO_HEADERS, step!("publish.zeros.store"));
}

/// Publishes in a file that is not visible yet, without checking the lock; the header found if it
/// is not 0.
pub fn publish_unseen(
    cells: &Cells,
    position: u64,
    payload: Payload<'_>,
    header_word: u32,
) -> Result<(), u32> {
    copy(cells, position, payload);
    cells.publish_header(position, NOT_INITIALIZED, header_word, step!("publish.header.cas"))
}

/// Steps 8d and 8e.
#[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
#[inline(always)]
pub fn show(
    cells: &Cells,
    position: u64,
    header_word: u32,
    guard: &WriteGuard<'_>,
) -> Result<(), NotPublished> {
    guard.check().map_err(NotPublished::LockLost)?;
    let step = step!("publish.header.cas");
    cells.publish_header(position, NOT_INITIALIZED, header_word, step).map_err(|found| {
        // A process that took the lock by force may have published here since the check.
        guard.check().map_or_else(NotPublished::LockLost, |()| NotPublished::HeaderTaken(found))
    })
}

/// Ends a file at a position whose header was `found`, so that no document can follow. The mark
/// after it is for people who read hex.
pub fn end_file(
    cells: &Cells,
    position: u64,
    found: u32,
    _guard: &WriteGuard<'_>,
) -> Result<(), u32> {
    cells.publish_header(position, found, END_OF_DATA, step!("eof.header.cas"))?;
    cells.store_each_relaxed(position + HEADER_LEN, &EOF_DECORATION, step!("eof.mark.store"));
    Ok(())
}

/// Ends a file of version 4, whose headers are unaligned. Only one byte of four changes from zero,
/// so that no reader sees a partial store; there are no writers of that version any more.
pub fn end_old_file(cells: &Cells, position: u64, _guard: &WriteGuard<'_>) {
    cells.store_each_relaxed(position + HEADER_LEN, &EOF_DECORATION, step!("eof.mark.store"));
    cells.store_each_relaxed(position, &END_OF_DATA.to_le_bytes(), step!("eof.header.cas"));
}
