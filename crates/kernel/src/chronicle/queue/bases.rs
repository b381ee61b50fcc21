//! Finds the base of a message that is stored as a difference (`docs/format.md` §1.14).

use crate::chronicle::protocol::locate::{self, Located};
use crate::chronicle::protocol::roll_file::{Slot, View};
use crate::sealed::difference::{Base, Difference, FARTHEST, LONGEST};
use crate::sealed::packed;
use crate::{Error, Result};

/// A message that is stored as a difference.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    pub index: i64,
    pub sequence: u64,
    pub difference: Difference<'a>,
}

/// The base of a message in its file; `open` decrypts and decompresses stored bytes.
pub fn base_in(
    view: &mut View,
    at: Stored<'_>,
    open: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Base> {
    let Difference { distance, sum, .. } = at.difference;
    let wrong = |view: &View, position: u64, found: &str| {
        let (index, base) = (at.index, at.index.wrapping_sub(i64::from(distance)));
        let found = format!("{found} index={index:#x} base={base:#x}");
        let expected = format!(
            "a message that is stored in full, at most {FARTHEST} indexes before, with the CRC-32 \
             {sum:#010x}"
        );
        let what = "a message is stored as the difference to a missing one";
        Error::corrupt(what, &view.path(), position, found, expected)
    };
    let sequence = at.sequence.checked_sub(u64::from(distance));
    let Some(sequence) = sequence.filter(|_| (1..=FARTHEST).contains(&i64::from(distance))) else {
        return Err(wrong(view, 0, "no index of this cycle"));
    };
    let Located::Found(position) = locate::locate(view, sequence)? else {
        return Err(wrong(view, 0, "no message"));
    };
    let Slot::Document(document) = view.slot(position)? else {
        return Err(wrong(view, position, "no message"));
    };
    let stored = view.payload(&document);
    if packed::difference(stored).is_some() {
        return Err(wrong(view, position, "another difference"));
    }
    let plain = open(stored)?;
    let bytes = plain.as_deref().unwrap_or(stored);
    if packed::difference(bytes).is_some() && plain.is_some() && !packed::is_packed(stored) {
        return Err(wrong(view, position, "another difference"));
    }
    if bytes.len() > LONGEST {
        return Err(wrong(view, position, "a message that is too long"));
    }
    let base = Base::new(bytes.to_vec());
    if base.sum() == sum { Ok(base) } else { Err(wrong(view, position, "another message")) }
}
