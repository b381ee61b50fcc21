//! Checks the index of a roll file: each message that is due has an entry, and each entry points to
//! its message.

use super::walk::{Ending, Walked};
use crate::Result;
use crate::chronicle::format::index::ArrayLayout;
use crate::chronicle::protocol::roll_file::View;
use crate::finding::{Finding, Kind};

/// Wrong entries of one array.
#[derive(Default)]
struct Wrong {
    count: u64,
    first: Option<(u64, String, String)>,
}

impl Wrong {
    fn add(&mut self, at: u64, found: impl Into<String>, expected: String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some((at, found.into(), expected));
        }
    }

    fn into_finding(self, kind: Kind, view: &View) -> Option<Finding> {
        let (at, found, expected) = self.first?;
        let more = if self.count > 1 {
            format!(" (the first of {} in this array)", self.count)
        } else {
            String::new()
        };
        Some(Finding::at(kind, view.file().path(), at, found + &more, expected))
    }
}

/// Checks the index against the walked messages.
pub fn check(view: &mut View, walked: &Walked, findings: &mut Vec<Finding>) -> Result<()> {
    let word = view.file().layout.index2index;
    let position = view.word(word)?;
    let path = view.file().path().to_path_buf();
    let Some(upper) = view.array(position)? else {
        let found = format!("{position:#x}");
        let expected = "the position of the index2index array";
        findings.push(Finding::at(Kind::IndexArray, &path, word, found, expected));
        return Ok(());
    };
    let shape = view.file().shape;
    let per_array = u64::from(shape.index_count);
    let due = walked.due.len() as u64;
    for number in 0..per_array {
        let linked = view.word(upper.slot(number))?;
        let is_due = number * per_array < due;
        if let Some(lower) = view.array(linked)? {
            check_entries(view, walked, number, &lower, findings)?;
        } else if is_due {
            let expected =
                format!("an array for {} messages", (due - number * per_array).min(per_array));
            let at = upper.slot(number);
            findings.push(Finding::at(
                Kind::IndexArray,
                &path,
                at,
                format!("{linked:#x}"),
                expected,
            ));
        }
    }
    let arrays = due.div_ceil(per_array);
    check_used(view, &upper, arrays, findings)
}

fn check_entries(
    view: &mut View,
    walked: &Walked,
    number: u64,
    lower: &ArrayLayout,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let per_array = u64::from(view.file().shape.index_count);
    let (mut holes, mut wrong) = (Wrong::default(), Wrong::default());
    let mut used = 0;
    for slot in 0..per_array {
        let at = lower.slot(slot);
        let found = view.word(at)?;
        let due = usize::try_from(number * per_array + slot).ok();
        match due.and_then(|due| walked.due.get(due)) {
            Some(0) => {}
            Some(expected) if found == *expected => used = slot + 1,
            Some(expected) if !view.is_document_position(found) => {
                holes.add(at, format!("{found:#x}"), format!("{expected:#x}"));
            }
            Some(expected) => wrong.add(at, format!("{found:#x}"), format!("{expected:#x}")),
            None if is_of_nothing(view, walked, found)? => {
                wrong.add(at, format!("{found:#x}"), "0".to_owned());
            }
            None => {}
        }
    }
    findings.extend(holes.into_finding(Kind::IndexHole, view));
    findings.extend(wrong.into_finding(Kind::IndexEntry, view));
    check_used(view, lower, used, findings)
}

/// Whether an entry after the last walked message is wrong: a message appended since the walk is
/// not.
fn is_of_nothing(view: &mut View, walked: &Walked, found: u64) -> Result<bool> {
    if !view.is_document_position(found) {
        return Ok(false);
    }
    let is_new = found >= walked.position && walked.ending != Ending::EndOfData;
    Ok(!is_new || !view.is_message(found)?)
}

/// `used` is a hint, and at least the number of the last used slot plus 1.
fn check_used(
    view: &mut View,
    array: &ArrayLayout,
    least: u64,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let used = view.word(array.used)?;
    let most = u64::from(view.file().shape.index_count);
    if used < least || used > most {
        let (found, expected) = (format!("used {used}"), format!("used {least}"));
        findings.push(Finding::at(
            Kind::IndexCount,
            view.file().path(),
            array.used,
            found,
            expected,
        ));
    }
    Ok(())
}
