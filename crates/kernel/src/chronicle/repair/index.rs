//! Repairs the index of a roll file: links or creates arrays, and corrects entries and counts.

use std::collections::HashSet;

use super::Action;
use crate::Result;
use crate::chronicle::format::index::{ArrayLayout, INDEX2INDEX};
use crate::chronicle::protocol::indexing;
use crate::chronicle::protocol::lock::guard::DetachedGuard;
use crate::chronicle::protocol::roll_file::{Slot, View};
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::verify::walk::{Ending, Walked};
use crate::finding::Kind;
use crate::probe::fault::{Step, step};
use quire_wire::reader::Reader;

/// How well an array fits the slot where it is, or might be, linked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Its entries are of other messages.
    Wrong,
    Empty,
    /// Some entries are right: this many.
    Right(u64),
}

/// Makes the index agree with the walked messages.
pub fn repair(
    queue: &Queue,
    view: &mut View,
    walked: &mut Walked,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let Some(upper) = upper(view, walked, actions)? else { return Ok(()) };
    view.make_array_writable(&upper)?;
    let per_array = u64::from(view.file().shape.index_count);
    let mut linked = linked_arrays(view, walked, &upper)?;
    for number in 0..per_array {
        let position = view.word(upper.slot(number))?;
        let mut lower = view.array(position)?;
        if let Some(array) = lower
            && fit(view, walked, number, &array)? == Fit::Wrong
        {
            linked.remove(&position);
            lower = None;
        }
        let is_due = number * per_array < walked.due.len() as u64;
        if lower.is_none() && (is_due || position != 0) {
            lower = link(queue, view, walked, &upper, number, &mut linked, guard, actions)?;
        }
        if let Some(lower) = lower {
            store_entries(view, walked, number, &lower, actions)?;
        }
    }
    store_counts(view, walked, &upper, actions)
}

/// The upper array; if the word does not point to it, the one found in the file.
fn upper(
    view: &mut View,
    walked: &Walked,
    actions: &mut Vec<Action>,
) -> Result<Option<ArrayLayout>> {
    let at = view.file().layout.index2index;
    let position = view.word(at)?;
    if let Some(upper) = view.array(position)? {
        return Ok(Some(upper));
    }
    for position in walked.arrays.clone() {
        if is_upper(view, position)? {
            view.region().store_release(at, position, step!("repair.link.store"));
            let path = view.path();
            let done = format!("linked to the array at {position:#x}");
            actions.push(Action::at(Kind::IndexArray, &path, at, done));
            return view.array(position);
        }
    }
    Ok(None)
}

fn is_upper(view: &mut View, position: u64) -> Result<bool> {
    let Slot::Document(document) = view.slot(position)? else { return Ok(false) };
    let preamble = view.preamble(&document);
    let mut reader = Reader::new(&preamble);
    Ok(reader.name_if() == Some(INDEX2INDEX.as_bytes()))
}

/// Positions of the arrays that fit where they are linked.
fn linked_arrays(view: &mut View, walked: &Walked, upper: &ArrayLayout) -> Result<HashSet<u64>> {
    let mut linked = HashSet::new();
    for number in 0..u64::from(view.file().shape.index_count) {
        let position = view.word(upper.slot(number))?;
        if let Some(array) = view.array(position)?
            && fit(view, walked, number, &array)? != Fit::Wrong
        {
            linked.insert(position);
        }
    }
    Ok(linked)
}

fn fit(view: &mut View, walked: &Walked, number: u64, array: &ArrayLayout) -> Result<Fit> {
    let per_array = u64::from(view.file().shape.index_count);
    let (mut right, mut wrong) = (0, 0);
    for slot in 0..per_array {
        let found = view.word(array.slot(slot))?;
        if found == 0 {
            continue;
        }
        let due = usize::try_from(number * per_array + slot).ok();
        let expected = due.and_then(|due| walked.due.get(due));
        if expected == Some(&found) {
            right += 1;
        } else {
            wrong += 1;
        }
    }
    Ok(match (right, wrong) {
        (0, 0) => Fit::Empty,
        (0, _) => Fit::Wrong,
        _ => Fit::Right(right),
    })
}

/// Links the array that fits best, or a new one; if neither is possible, clears the slot.
#[allow(clippy::too_many_arguments)] // the file, and what is known of it
fn link(
    queue: &Queue,
    view: &mut View,
    walked: &mut Walked,
    upper: &ArrayLayout,
    number: u64,
    linked: &mut HashSet<u64>,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<Option<ArrayLayout>> {
    let per_array = u64::from(view.file().shape.index_count);
    let is_due = number * per_array < walked.due.len() as u64;
    let mut best = None;
    for position in walked.arrays.clone() {
        if !is_due || linked.contains(&position) || is_upper(view, position)? {
            continue;
        }
        let Some(array) = view.array(position)? else { continue };
        let found = fit(view, walked, number, &array)?;
        if found != Fit::Wrong && best.is_none_or(|(best, _)| found > best) {
            best = Some((found, position));
        }
    }
    let position = match best {
        Some((_, position)) => position,
        None if is_due && walked.ending == Ending::Waiting(0) => {
            add_array(queue, view, walked, guard)?
        }
        None => 0,
    };
    let (at, path) = (upper.slot(number), view.path());
    let found = view.word(at)?;
    if found != position {
        view.region().store_release(at, position, step!("repair.link.store"));
        let done = format!("{found:#x} became {position:#x}");
        actions.push(Action::at(Kind::IndexArray, &path, at, done));
    }
    linked.insert(position);
    view.array(position)
}

/// Publishes an empty array after the last document; returns its position.
fn add_array(
    queue: &Queue,
    view: &mut View,
    walked: &mut Walked,
    guard: &DetachedGuard<'_>,
) -> Result<u64> {
    let position = walked.position;
    let next = indexing::publish_array(view, position, queue.growth(), guard)?;
    walked.arrays.push(position);
    walked.position = next;
    Ok(position)
}

fn store_entries(
    view: &mut View,
    walked: &Walked,
    number: u64,
    lower: &ArrayLayout,
    actions: &mut Vec<Action>,
) -> Result<()> {
    view.make_array_writable(lower)?;
    let per_array = u64::from(view.file().shape.index_count);
    let (mut holes, mut wrong, mut used) = (0, 0, 0);
    for slot in 0..per_array {
        let at = lower.slot(slot);
        let found = view.word(at)?;
        let due = usize::try_from(number * per_array + slot).ok();
        let expected = match due.and_then(|due| walked.due.get(due)) {
            Some(0) => found, // in a gap: unknown
            Some(expected) => *expected,
            None => 0,
        };
        if expected != 0 {
            used = slot + 1;
        }
        if found != expected {
            if found == 0 {
                holes += 1;
            } else {
                wrong += 1;
            }
            view.region().store_release(at, expected, step!("repair.slot.store"));
        }
    }
    let path = view.path();
    for (kind, count) in [(Kind::IndexHole, holes), (Kind::IndexEntry, wrong)] {
        if count > 0 {
            let done = format!("{count} entries were stored");
            actions.push(Action::at(kind, &path, lower.slots, done));
        }
    }
    store_count(view, lower.used, used, step!("repair.count.store"), actions)
}

/// Step 9d of an append, for all of them: `used` of the upper array, and `lastIndex`.
fn store_counts(
    view: &mut View,
    walked: &Walked,
    upper: &ArrayLayout,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let per_array = u64::from(view.file().shape.index_count);
    let spacing = u64::from(view.file().shape.index_spacing);
    let used = (walked.due.len() as u64).div_ceil(per_array).max(1);
    let step = step!("repair.count.store");
    let last_index = view.file().layout.last_index;
    let next = walked.next_sequence.next_multiple_of(spacing);
    if view.word(upper.used)? < used || view.word(upper.used)? > per_array {
        store_count(view, upper.used, used, step, actions)?;
    }
    if last_index == 0 { Ok(()) } else { store_count(view, last_index, next, step, actions) }
}

fn store_count(
    view: &mut View,
    at: u64,
    expected: u64,
    step: Step,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let found = view.word(at)?;
    if found != expected {
        view.region().store_release(at, expected, step);
        let path = view.path();
        let done = format!("{found} became {expected}");
        actions.push(Action::at(Kind::IndexCount, &path, at, done));
    }
    Ok(())
}
