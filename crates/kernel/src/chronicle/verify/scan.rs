//! Documents that no word, entry or earlier document leads to, found by trying every offset where
//! one may begin.

use std::io;

use crate::chronicle::format::document::{self, ALIGNMENT, HEADER_LEN, Header};
use crate::chronicle::protocol::roll_file::{Slot, View};
use crate::os::files;
use crate::{Error, Result};

/// The first position after another at which two consecutive documents begin.
pub fn next_documents(view: &mut View, after: u64) -> Result<Option<u64>> {
    let from = (after + HEADER_LEN).next_multiple_of(ALIGNMENT);
    let len = view.file().window.refresh_len()?;
    let (file, path) = (view.file().clone(), view.path());
    let (mut found, mut failed) = (None, None);
    let looked = files::each_used_page(file.window.file(), from, |at, page| {
        for place in places(at, page, len).filter(|place| *place >= from) {
            match is_followed(view, place) {
                Ok(false) => continue,
                Ok(true) => found = Some(place),
                Err(error) => failed = Some(error),
            }
            return Err(io::ErrorKind::Interrupted.into()); // stops at the first one found
        }
        Ok(())
    });
    match (looked, found, failed) {
        (_, _, Some(error)) => Err(error),
        (Err(error), None, None) => Err(Error::io("cannot look at", &path, error)),
        (_, found, None) => Ok(found),
    }
}

/// The positions in a page at which a document that ends inside the file may begin.
fn places(at: u64, page: &[u8], len: u64) -> impl Iterator<Item = u64> {
    let first = at.next_multiple_of(ALIGNMENT);
    let skipped = usize::try_from(first - at).unwrap_or(usize::MAX).min(page.len());
    let words = page[skipped..].chunks_exact(size_of::<u32>());
    (first..).step_by(size_of::<u32>()).zip(words).filter_map(move |(place, word)| {
        let word = word.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let length = match document::parse(word) {
            Header::Data(length) | Header::Meta(length) => u64::from(length),
            _ => return None,
        };
        (length > 0 && place + HEADER_LEN + length <= len).then_some(place)
    })
}

fn is_followed(view: &mut View, place: u64) -> Result<bool> {
    let mut at = place;
    for _ in 0..2 {
        match view.slot(at) {
            Ok(Slot::Document(document)) => at = document.next,
            Ok(_) | Err(Error::Corrupt { .. } | Error::Hole { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
