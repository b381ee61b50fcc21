//! The bytes of one message, and the index entry that points to them.

use std::path::Path;

use super::format::entry::{ENTRY, MESSAGE_MAX, STAMP, State};
use super::format::producer::Producer;
use super::protocol::directory::{Form, Layout};
use super::protocol::end::is_taken;
use super::protocol::entries::{Entries, Entry};
use super::protocol::pages::Pages;
use super::queue::QuickQueue;
use crate::explained::{Explained, Part, SHOWN_MAX, Section};
use crate::{Error, Result};

/// Explains the message at an index; None if there is none.
pub fn explain(queue: &QuickQueue, index: u64) -> Result<Option<Explained>> {
    let Some(Layout { form, size }) = queue.layout()? else { return Ok(None) };
    let dir = queue.path();
    if !index.is_multiple_of(ENTRY) || index >= size.capacity() {
        return Ok(None);
    }
    let pages = Pages::index(dir, form, size);
    let found = Entries::new(&pages).get(index)?.filter(|entry| is_taken(form, entry.stamp));
    let Some(entry) = found else { return Ok(None) };
    let producer = match form {
        Form::Single => None,
        Form::Shared => Producer::from_bits(entry.stamp.producer_bits()),
    };
    let file = pages.path(size.page(index));
    let words = entry_parts(&file, size.position(index), entry, producer, form);
    if entry.stamp.state() != State::Complete {
        return Ok(Some(Explained { file, parts: words }));
    }
    let is_possible = entry.stamp.length() <= MESSAGE_MAX
        && entry.end().is_some_and(|end| end <= size.capacity())
        && (form == Form::Single || producer.is_some());
    if !is_possible {
        let found = format!("{:#x} and the stamp {:#x}", entry.begin, entry.stamp.word());
        let what = "an entry names no message";
        let position = size.position(index);
        return Err(Error::corrupt(what, &file, position, found, "an address and a stamp"));
    }
    let mut parts = message_parts(&Pages::data(dir, producer, size), entry)?;
    let file = parts.first().map_or(file, |part| part.file.clone());
    parts.extend(words);
    Ok(Some(Explained { file, parts }))
}

/// The message, page by page.
fn message_parts(pages: &Pages, entry: Entry) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for part in pages.size().parts(entry.begin, entry.stamp.length().into()) {
        let window = pages.open(part.page)?.ok_or_else(|| pages.missing_data(part.page))?;
        let shown = usize::try_from(part.length).unwrap_or(SHOWN_MAX).min(SHOWN_MAX);
        let mut bytes = vec![0; shown];
        window.read_at(&mut bytes, part.position)?;
        let meaning = if parts.is_empty() { "the message" } else { "the message, continued" };
        let (place, range) = ((Section::Payload, window.path()), (part.position, part.length));
        parts.push(Part::plain(place, range, &bytes, "bytes", meaning.to_owned()));
    }
    Ok(parts)
}

/// The fields of the entry, in order.
fn entry_parts(
    file: &Path,
    position: u64,
    entry: Entry,
    producer: Option<Producer>,
    form: Form,
) -> Vec<Part> {
    let stamp = entry.stamp.word().to_le_bytes();
    let (length, rest) = stamp.split_at(4);
    let (name, flag) = rest.split_at(3);
    let writer = match (form, producer) {
        (Form::Single, _) => "one writer".to_owned(),
        (Form::Shared, Some(producer)) => format!("the producer {producer}"),
        (Form::Shared, None) => "no producer's name".to_owned(),
    };
    let state = match entry.stamp.state() {
        State::Complete => "complete",
        State::Claimed => "claimed, not complete",
        State::Free | State::Unknown => "unknown",
    };
    let begin = format!("the message begins at address {:x}", entry.begin);
    let size = format!("{} bytes", entry.stamp.length());
    let part = |at, bytes: &[u8], code, meaning| {
        Part::plain(
            (Section::Index, file),
            (position + at, bytes.len() as u64),
            bytes,
            code,
            meaning,
        )
    };
    vec![
        part(0, &entry.begin.to_le_bytes(), "address", begin),
        part(STAMP, length, "length", size),
        part(STAMP + 4, name, "producer", writer),
        part(STAMP + 7, flag, "state", state.to_owned()),
    ]
}
