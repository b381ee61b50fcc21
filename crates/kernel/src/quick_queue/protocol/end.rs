//! Finds the end of an index, by a binary search of its newest page.

use super::directory::{Form, Span};
use super::entries::Entries;
use super::pages::Pages;
use crate::Result;
use crate::quick_queue::format::entry::{ENTRY, Stamp, State};

/// The index of the first free entry. Pages without taken entries are skipped, from the newest
/// down: their writer may have died before it used them.
pub fn end_of_index(
    pages: &Pages,
    span: Option<Span>,
    is_taken: impl Fn(Stamp) -> bool,
) -> Result<u64> {
    let Some(span) = span else { return Ok(0) };
    for page in (span.lowest..=span.highest).rev() {
        let taken = taken_in(pages, page, &is_taken)?;
        if taken > 0 {
            return Ok(pages.size().start_of(page) + taken * ENTRY);
        }
    }
    Ok(pages.size().start_of(span.lowest))
}

/// Whether an entry is taken, by the form of its queue.
#[must_use]
pub fn is_taken(form: Form, stamp: Stamp) -> bool {
    match form {
        Form::Single => stamp.state() == State::Complete,
        Form::Shared => stamp != Stamp::FREE,
    }
}

/// How many entries of a page are taken; they are the first ones.
fn taken_in(pages: &Pages, page: u32, is_taken: &impl Fn(Stamp) -> bool) -> Result<u64> {
    let mut entries = Entries::new(pages);
    let start = pages.size().start_of(page);
    let (mut low, mut high) = (0, pages.size().bytes() / ENTRY);
    while low < high {
        let middle = u64::midpoint(low, high);
        match entries.get(start + middle * ENTRY)? {
            Some(entry) if is_taken(entry.stamp) => low = middle + 1,
            Some(_) => high = middle,
            None => return Ok(0),
        }
    }
    Ok(low)
}
