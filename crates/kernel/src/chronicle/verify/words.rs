//! Checks the words of a roll file that locate its last message.

use super::walk::Walked;
use crate::Result;
use crate::chronicle::format::roll_cycle::RollCycle;
use crate::chronicle::protocol::roll_file::{Known, View};
use crate::finding::{Finding, Kind};

/// Checks `writePosition`, the sequence word and `lastIndex`. A writer may be between two of its
/// stores: a finding counts only if it is unchanged after the lock was seen free.
pub fn check(
    view: &mut View,
    walked: &mut Walked,
    roll: &RollCycle,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let layout = view.file().layout.clone();
    let position = view.word(layout.write_position)?;
    if view.is_document_position(position) {
        walked.advance(view, position)?;
    }
    let expected = walked.last.map_or(0, |last| last.position);
    if position != expected && !is_before_first(view, walked, position)? {
        let (found, expected) = (format!("{position:#x}"), format!("{expected:#x}"));
        let at = layout.write_position;
        findings.push(Finding::at(Kind::WritePosition, view.file().path(), at, found, expected));
    } else if let (Some(at), Some(last)) = (layout.sequence, walked.last) {
        check_sequence_word(view, at, last, roll, findings)?;
    }
    check_last_index(view, walked, findings)
}

/// Whether there is no message: `writePosition` is 0, or points to the upper index array.
fn is_before_first(view: &mut View, walked: &Walked, position: u64) -> Result<bool> {
    let index2index = view.word(view.file().layout.index2index)?;
    Ok(walked.last.is_none() && (position == 0 || position == index2index))
}

fn check_sequence_word(
    view: &mut View,
    at: u64,
    last: Known,
    roll: &RollCycle,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let word = view.word(at)?;
    let expected = view.file().shape.sequence_word(last.position, last.sequence);
    // A Java process that created the file uses the sequence bits of the roll cycle.
    let by_creator = last.position.wrapping_shl(roll.shift()).wrapping_add(last.sequence);
    if word != expected && word != by_creator {
        let (found, expected) = (format!("{word:#x}"), format!("{expected:#x}"));
        findings.push(Finding::at(Kind::SequenceWord, view.file().path(), at, found, expected));
    }
    Ok(())
}

/// `lastIndex` may have been raised since the walk, but was never above its count.
fn check_last_index(view: &mut View, walked: &Walked, findings: &mut Vec<Finding>) -> Result<()> {
    let at = view.file().layout.last_index;
    if at == 0 {
        return Ok(());
    }
    let expected =
        walked.next_sequence.next_multiple_of(u64::from(view.file().shape.index_spacing));
    let now = view.word(at)?;
    if now < expected || walked.last_index > expected {
        let found = if now < expected { now } else { walked.last_index };
        let (found, expected) = (format!("lastIndex {found}"), format!("lastIndex {expected}"));
        findings.push(Finding::at(Kind::IndexCount, view.file().path(), at, found, expected));
    }
    Ok(())
}
