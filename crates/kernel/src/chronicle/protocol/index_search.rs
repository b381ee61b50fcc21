//! Searching the index (`docs/protocol.md` §9.4): from which message to walk.
//!
//! An entry is trusted once the number of messages between it and the preceding entry is what the
//! two imply; the same goes for the messages before the first entry of its array. So no single
//! damaged word leads to a wrong message. Wrong entries are skipped; the number of probes is
//! bounded by what a sound file of this size could need, whatever its arrays say.
//!
//! If a damaged message lies between an entry and the preceding one, the messages there cannot be
//! counted. The entry is then trusted if the number of messages up to the next entry, or up to the
//! last message, is right: so messages after the damage can be reached. If that range has a damaged
//! message too, the number of messages before it must be lower.

use super::hints::{self, Pair};
use super::roll_file::{Known, Slot, View};
use super::walk::Walk;
use crate::chronicle::format::index::{ArrayLayout, Shape};
use crate::{Error, Result};

/// The bound of a search for the last entry not after it.
#[derive(Clone, Copy)]
pub enum UpTo {
    /// By sequence.
    Sequence(u64),
    /// By position.
    Position(u64),
}

impl UpTo {
    const fn includes(self, entry: Known) -> bool {
        match self {
            Self::Sequence(sequence) => entry.sequence <= sequence,
            Self::Position(position) => entry.position <= position,
        }
    }
}

/// The last entry that `up_to` includes; `checked` leaves out entries that are not trusted.
pub fn last_entry(view: &mut View, up_to: UpTo, checked: bool) -> Result<Option<Known>> {
    let shape = view.file().shape;
    let upper_position = view.word(view.file().layout.index2index)?;
    let Some(upper) = view.array(upper_position)? else { return Ok(None) };
    let count = u64::from(shape.index_count);
    let newest = match up_to {
        UpTo::Sequence(sequence) => sequence,
        UpTo::Position(_) => u64::MAX,
    };
    let greatest = view.word(upper.used)?.min(count - 1);
    let mut slot = match shape.upper_slot(newest) {
        upper if upper <= greatest => IndexSlot { upper, lower: shape.lower_slot(newest) + 1 },
        _ => IndexSlot { upper: greatest, lower: count },
    };
    let budget = StepBudget(view.file().window.file_len() / 4 + count);
    let mut search = Search { view, upper, shape, budget, array: None };
    while let Some((found, entry)) = search.entry_before(slot)? {
        slot = found;
        if up_to.includes(entry)
            && search.view.is_message(entry.position)?
            && (!checked || search.is_believed(found, entry)?)
        {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// A slot of a lower array: the slot of that array in the upper one, and its own.
#[derive(Clone, Copy, PartialEq, Eq)]
struct IndexSlot {
    upper: u64,
    lower: u64,
}

/// The result of counting the messages between two entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    /// The expected number.
    Right,
    /// Another number.
    Wrong,
    /// They cannot be counted: one of them is damaged.
    Broken,
}

/// How many slots and documents may still be visited.
struct StepBudget(u64);

impl StepBudget {
    fn take(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

struct Search<'v> {
    view: &'v mut View,
    upper: ArrayLayout,
    shape: Shape,
    budget: StepBudget,
    /// The most recently visited lower array.
    array: Option<(u64, Option<ArrayLayout>)>,
}

impl Search<'_> {
    /// The last slot before one that holds a position.
    fn entry_before(&mut self, slot: IndexSlot) -> Result<Option<(IndexSlot, Known)>> {
        let IndexSlot { upper, mut lower } = slot;
        for upper in (0..=upper).rev() {
            if let Some(array) = self.array(upper)? {
                for lower in (0..lower).rev() {
                    if !self.budget.take() {
                        return Ok(None);
                    }
                    let slot = IndexSlot { upper, lower };
                    if let Some(entry) = self.entry(array, slot)? {
                        return Ok(Some((slot, entry)));
                    }
                }
            } else if !self.budget.take() {
                return Ok(None);
            }
            lower = u64::from(self.shape.index_count);
        }
        Ok(None)
    }

    fn entry(&mut self, array: ArrayLayout, slot: IndexSlot) -> Result<Option<Known>> {
        let position = self.view.word(array.slot(slot.lower))?;
        let sequence = self.shape.sequence(slot.upper, slot.lower);
        let is_one = self.view.is_document_position(position);
        Ok(is_one.then_some(Known { position, sequence }))
    }

    fn array(&mut self, upper: u64) -> Result<Option<ArrayLayout>> {
        if let Some((found, array)) = self.array
            && found == upper
        {
            return Ok(array);
        }
        let position = self.view.word(self.upper.slot(upper))?;
        let array = self.view.array(position)?;
        self.array = Some((upper, array));
        Ok(array)
    }

    fn is_believed(&mut self, slot: IndexSlot, entry: Known) -> Result<bool> {
        match self.follows(slot, entry)? {
            Count::Right => {}
            Count::Wrong => return Ok(false),
            Count::Broken if !self.leads_on(slot, entry)? => return Ok(false),
            Count::Broken => self.view.file().set_checked(entry),
        }
        // A damaged link to an array shifts all its entries alike, so checking the first one
        // suffices.
        let Some(array) = self.array(slot.upper)? else { return Ok(false) };
        for lower in 0..slot.lower {
            let first = IndexSlot { upper: slot.upper, lower };
            if !self.budget.take() {
                return Ok(false);
            }
            if let Some(entry) = self.entry(array, first)? {
                return Ok(self.follows(first, entry)? != Count::Wrong);
            }
        }
        Ok(true)
    }

    /// Whether the number of messages from an entry to the next one, or to the last message, is
    /// right.
    fn leads_on(&mut self, slot: IndexSlot, entry: Known) -> Result<bool> {
        let next = match self.entry_after(slot)? {
            Some(next) => Some(next),
            None => self.last()?.filter(|last| last.position > entry.position),
        };
        let Some(next) = next else { return Ok(false) };
        Ok(self.leads_to(entry, next)? != Count::Wrong)
    }

    /// The next slot of the same array that holds a position.
    fn entry_after(&mut self, slot: IndexSlot) -> Result<Option<Known>> {
        let Some(array) = self.array(slot.upper)? else { return Ok(None) };
        for lower in slot.lower + 1..u64::from(self.shape.index_count) {
            if !self.budget.take() {
                return Ok(None);
            }
            if let Some(entry) = self.entry(array, IndexSlot { lower, ..slot })? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The last message, if its sequence word belongs to it.
    fn last(&mut self) -> Result<Option<Known>> {
        let layout = self.view.file().layout.clone();
        let position = self.view.write_position()?;
        let view = &mut *self.view;
        let pair = hints::read_pair(&layout, self.shape, || Ok(position), |at| view.word(at))?;
        Ok(match pair {
            Pair::Known(position, sequence) => Some(Known { position, sequence }),
            Pair::Empty | Pair::Unnumbered(_) => None,
        })
    }

    /// Whether the number of messages from the preceding entry to this one is what the slots imply.
    fn follows(&mut self, slot: IndexSlot, entry: Known) -> Result<Count> {
        if self.view.file().has_checked(entry) {
            return Ok(Count::Right);
        }
        let before = self.entry_before(slot)?.map(|(_, before)| before);
        let follows = self.leads_to(before.unwrap_or(Known { position: 0, sequence: 0 }), entry)?;
        if follows == Count::Right {
            self.view.file().set_checked(entry);
        }
        Ok(follows)
    }

    fn leads_to(&mut self, from: Known, to: Known) -> Result<Count> {
        let mut walk = Walk::from(self.view, Some(from));
        while walk.at.position < to.position && walk.at.sequence <= to.sequence {
            if !self.budget.take() {
                break;
            }
            match walk.step() {
                Ok(Slot::Document(_)) => {}
                Ok(_) | Err(Error::Corrupt { .. }) if walk.at.sequence < to.sequence => {
                    return Ok(Count::Broken);
                }
                Ok(_) | Err(Error::Corrupt { .. }) => return Ok(Count::Wrong),
                Err(error) => return Err(error),
            }
        }
        Ok(if walk.at == to { Count::Right } else { Count::Wrong })
    }
}
