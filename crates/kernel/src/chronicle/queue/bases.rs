//! Messages that are stored as differences, restored by the messages before them
//! (`docs/format.md` §1.14).

use std::sync::{Arc, Mutex, PoisonError};

use super::handle::Queue;
use crate::chronicle::protocol::locate::{self, Located};
use crate::chronicle::protocol::roll_file::{Slot, View};
use crate::sealed::cipher::Place;
use crate::sealed::difference::{Base, Difference, FARTHEST, LONGEST};
use crate::sealed::packed;
use crate::{Error, Result};

/// The most bases that a queue keeps, and how many bytes they may have together.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 4 << 20;

/// The bases that were read last, by their indexes.
#[derive(Default)]
pub struct Bases(Mutex<Vec<(i64, Arc<Base>)>>);

impl Bases {
    fn find(&self, index: i64, sum: u32) -> Option<Arc<Base>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().rev().find(|(of, base)| *of == index && base.sum() == sum);
        found.map(|(_, base)| Arc::clone(base))
    }

    fn keep(&self, index: i64, base: &Arc<Base>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, _)| *of != index);
        kept.push((index, Arc::clone(base)));
        let mut bytes: usize = kept.iter().map(|(_, base)| base.bytes().len()).sum();
        while kept.len() > KEPT || bytes > KEPT_BYTES {
            bytes -= kept.remove(0).1.bytes().len();
        }
    }
}

impl Queue {
    /// The message that is stored as a difference.
    #[cold]
    pub fn restored(&self, difference: Difference<'_>, index: i64) -> Result<Vec<u8>> {
        let of = index.wrapping_sub(i64::from(difference.distance));
        let base = if let Some(base) = self.bases().find(of, difference.sum) {
            base
        } else {
            let (cycle, sequence) = self.roll().split(index)?;
            let Some(mut view) = self.view(cycle)? else {
                return Err(Error::gone("cannot open", &self.place_of_cycle(cycle)?));
            };
            let at = Stored { index, sequence, difference };
            let open = |stored: &[u8]| {
                let place = Place { cycle, index: of, is_metadata: false };
                let cipher = self.options().encryption.cipher();
                let plain = cipher.map_or(Ok(None), |cipher| cipher.open(place, stored))?;
                let stored = plain.as_deref().unwrap_or(stored);
                let unpacked = self.compressing().unpacked(stored, of)?;
                Ok(unpacked.or(plain))
            };
            let base = Arc::new(base_in(&mut view, at, open)?);
            self.bases().keep(of, &base);
            base
        };
        difference.restored(&base).map_err(|fault| {
            let fault = fault.with("index", format_args!("{index:#x}"));
            Error::Wire(fault.with("base", format_args!("{of:#x}")))
        })
    }
}

/// A message that is stored as a difference.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    pub index: i64,
    pub sequence: u64,
    pub difference: Difference<'a>,
}

/// The base of a message in its file; `open` decrypts and decompresses what was stored otherwise.
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
        let what = "a message is stored as the difference to one that is not there";
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
