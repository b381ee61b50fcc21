//! Checks one roll file.

use std::path::Path;
use std::sync::Arc;

use super::quiet::Quiet;
use super::walk::{Ending, Plain, Walked};
use super::{index, words};
use crate::chronicle::format::roll_cycle::RollCycle;
use crate::chronicle::protocol::head;
use crate::chronicle::protocol::hints::{self, Pair};
use crate::chronicle::protocol::roll_file::{self, RollFile, Slot, View};
use crate::chronicle::protocol::unfinished;
use crate::chronicle::protocol::walk::{Met, Walk};
use crate::chronicle::protocol::{compressed, create};
use crate::finding::{Finding, Kind};
use crate::memory::window::Window;
use crate::os::files::{self, Access};
use crate::os::interrupt::{self, Signals};
use crate::{Error, Result};

/// The file to check, and what is known before it is opened.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub path: &'a Path,
    pub cycle: i32,
    pub roll: &'a RollCycle,
    /// Whether a later file exists, so that this one has ended.
    pub is_older: bool,
    /// Messages of the queue are encrypted.
    pub is_encrypted: bool,
}

/// A file that was walked through.
pub struct Checked {
    pub messages: u64,
    pub bytes: u64,
    /// The sequence of the next message, if messages can be read.
    pub next_sequence: Option<u64>,
    /// A file of version 4, which has no table.
    pub is_old: bool,
    pub findings: Vec<Finding>,
}

impl Checked {
    /// The result for an unreadable file.
    const fn unread(findings: Vec<Finding>) -> Self {
        Self { messages: 0, bytes: 0, next_sequence: None, is_old: false, findings }
    }
}

/// Checks a file; None if it was removed. Errors concern the whole queue.
pub fn check(asked: Asked<'_>, quiet: &Quiet<'_>) -> Result<Option<Checked>> {
    match check_readable(asked, quiet) {
        Err(error) if error.is_of_the_system() => Err(error),
        Err(error @ (Error::Corrupt { .. } | Error::Io { .. } | Error::Hole { .. })) => {
            let finding = unreadable(asked.path, &error);
            Ok(Some(Checked::unread(vec![finding])))
        }
        // A directory, a link or a FIFO in its place.
        Err(Error::NotAQueue { why, path }) if path == asked.path => {
            let expected = "a regular file";
            let finding = Finding::of(Kind::UnreadableFile, asked.path, why, expected);
            Ok(Some(Checked::unread(vec![finding])))
        }
        checked => checked,
    }
}

/// Whether a file is ready and was never appended to, such as one that a pretoucher created for the
/// next cycle. The preceding file is in use until the first message of this one.
pub fn is_early(path: &Path, cycle: i32) -> Result<bool> {
    let file = match create::open_existing(path, cycle, false) {
        Err(Error::Corrupt { .. } | Error::Io { .. } | Error::NotAQueue { .. }) => {
            return Ok(false);
        }
        file => file?,
    };
    let Some(file) = file else { return Ok(false) };
    let mut view = View::new(Arc::new(file));
    let found = Walk::from(&mut view, None).next_message();
    let is_empty = matches!(found, Ok(Met::End(Slot::Waiting(0))));
    Ok(is_empty && view.write_position()? <= view.word(view.file().layout.index2index)?)
}

fn unreadable(path: &Path, error: &Error) -> Finding {
    match error {
        Error::Corrupt { position, found, expected, .. } => {
            Finding::at(Kind::UnreadableFile, path, *position, found.clone(), expected.clone())
        }
        Error::Hole { position, .. } => {
            let found = "a hole without disk space";
            Finding::at(Kind::UnreadableFile, path, *position, found, "a document")
        }
        error => Finding::of(Kind::UnreadableFile, path, error.to_string(), "a readable file"),
    }
}

fn check_readable(asked: Asked<'_>, quiet: &Quiet<'_>) -> Result<Option<Checked>> {
    if compressed::is_compressed(asked.path) {
        let file = compressed::open_whole(asked.path, asked.cycle, &mut || {
            interrupt::check(&mut quiet.may_wait())
        })?;
        return file.map(|file| check_ready(file, asked, quiet)).transpose();
    }
    let Some(file) = files::open(asked.path, Access { write: false, create_mode: None })? else {
        return Ok(None);
    };
    let window = Window::new(asked.path, file, false)?;
    let (count, spacing) = (asked.roll.index_count, asked.roll.index_spacing);
    if let Some(damage) = head::damage(&window, count, spacing)? {
        return lost_header(asked, damage.position).map(Some);
    }
    let layout = match roll_file::read_layout(&window) {
        Err(Error::Corrupt { .. }) if roll_file::is_cut_in_header(&window)? => None,
        layout => layout?,
    };
    let Some(layout) = layout else { return check_unready(asked, quiet) };
    check_ready(RollFile::new(asked.cycle, window, layout), asked, quiet).map(Some)
}

fn check_ready(file: RollFile, asked: Asked<'_>, quiet: &Quiet<'_>) -> Result<Checked> {
    let is_old = create::is_of_version_4(&file);
    let mut view = View::new(Arc::new(file));
    let plain = asked.is_encrypted.then(Plain::default);
    let mut walked = Walked::through(&mut view, plain, Signals::Handled(&mut quiet.may_wait()))?;
    let mut findings = gaps(&mut view, &walked, asked)?;
    findings.extend(not_encrypted(&walked, asked)?);
    let mut changing = Vec::new();
    check_changing(&mut view, &mut walked, asked, is_old, &mut changing)?;
    if !changing.is_empty() && quiet.is_reached()? {
        let mut again = Vec::new();
        check_changing(&mut view, &mut walked, asked, is_old, &mut again)?;
        let is_lost = findings.iter().any(|finding| finding.kind == Kind::LostEnd);
        let follows = |kind| is_lost && matches!(kind, Kind::WritePosition | Kind::SequenceWord);
        changing.retain(|finding| again.contains(finding) && !follows(finding.kind));
        findings.extend(changing);
    }
    let (messages, bytes) = (walked.messages, walked.position);
    let next_sequence = Some(walked.next_sequence);
    Ok(Checked { messages, bytes, next_sequence, is_old, findings })
}

/// The finding for unencrypted documents of an encrypted queue.
fn not_encrypted(walked: &Walked, asked: Asked<'_>) -> Result<Option<Finding>> {
    let Some(Plain { messages, metadata, first: Some(first) }) = walked.plain else {
        return Ok(None);
    };
    let index = asked.roll.to_index(asked.cycle, first.sequence)?;
    let found = format!("messages={messages} metadata={metadata} first={index:#x}");
    let expected = "encrypted messages";
    let kind = Kind::PlainMessages;
    Ok(Some(Finding::at(kind, asked.path, first.position, found, expected)))
}

/// The result for a file whose first documents are damaged but can be restored.
fn lost_header(asked: Asked<'_>, position: u64) -> Result<Checked> {
    let found = roll_file::first_bytes(asked.path)?;
    let expected = "the header that the index arrays after it prove";
    let finding = Finding::at(Kind::LostHeader, asked.path, position, found, expected);
    Ok(Checked::unread(vec![finding]))
}

/// Checks a file whose first header is not ready: its creator is alive or dead, or the header was
/// lost.
fn check_unready(asked: Asked<'_>, quiet: &Quiet<'_>) -> Result<Option<Checked>> {
    let finding = |kind| -> Result<Finding> {
        let found = roll_file::first_bytes(asked.path)?;
        Ok(Finding::at(kind, asked.path, 0, found, "the length of a header document"))
    };
    let mut findings = Vec::new();
    if unfinished::holds_messages(asked.path, asked.roll.index_count)? {
        findings.push(finding(Kind::LostHeader)?);
    } else if quiet.is_reached()? && create::is_unfinished(asked.path)? {
        findings.push(finding(Kind::UnfinishedFile)?);
    }
    Ok(Some(Checked::unread(findings)))
}

/// Findings that no writer can be about to complete: missing messages.
fn gaps(view: &mut View, walked: &Walked, asked: Asked<'_>) -> Result<Vec<Finding>> {
    let path = view.path();
    let index = |sequence| match asked.roll.to_index(asked.cycle, sequence) {
        Ok(index) => format!("{index:#x}"),
        Err(_) => "none".to_owned(),
    };
    let unmarked = walked.unmarked.map(|(at, word)| {
        let (found, expected) = (walked.gaps[0].found.clone(), format!("header {word:#010x}"));
        Finding::at(Kind::UnmarkedMessage, &path, at, found, expected)
    });
    let gaps = walked.gaps.iter().skip(usize::from(unmarked.is_some()));
    let mut findings: Vec<_> = unmarked.into_iter().collect();
    findings.extend(gaps.map(|gap| {
        let expected = gap.to.map_or_else(
            || format!("messages from {} on", index(gap.sequence)),
            |to| {
                let (from, past, at) = (index(gap.sequence), index(to.sequence), to.position);
                format!(
                    "messages from {from} to before {past}, at which reading goes on, at {at:#x}"
                )
            },
        );
        Finding::at(Kind::Gap, &path, gap.from, gap.found.clone(), expected)
    }));
    if let Some(expected) = lost_end(view, walked)? {
        let found = walked.ending.text();
        let expected = format!("messages from {} on: {expected}", index(walked.next_sequence));
        findings.push(Finding::at(Kind::LostEnd, &path, walked.position, found, expected));
    }
    Ok(findings)
}

/// The messages missing after the end, if any: those up to `writePosition`, if its sequence word
/// belongs to it, or a message that extends beyond the end of the file.
pub fn lost_end(view: &mut View, walked: &Walked) -> Result<Option<String>> {
    if !walked.gaps.is_empty() {
        return Ok(None);
    }
    let (layout, shape) = (view.file().layout.clone(), view.file().shape);
    let named = walked.write_position;
    if named >= walked.position {
        let pair = hints::read_pair(&layout, shape, || Ok(named), |at| view.word(at))?;
        if let Pair::Known(_, sequence) = pair
            && sequence >= walked.next_sequence
        {
            return Ok(Some(format!("up to number {sequence} of the file, at {named:#x}")));
        }
    }
    let is_broken = matches!(walked.ending, Ending::Broken(_));
    Ok(is_broken.then(|| "a document inside the file".to_owned()))
}

/// Findings that a writer may be about to complete.
fn check_changing(
    view: &mut View,
    walked: &mut Walked,
    asked: Asked<'_>,
    is_old: bool,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    // If messages are missing, the correct words and entries are unknown.
    if !is_old && walked.gaps.is_empty() {
        words::check(view, walked, asked.roll, findings)?;
        index::check(view, walked, findings)?;
    }
    // Documents may have been appended since, as by a Java writer whose clock lags.
    walked.advance(view, u64::MAX)?;
    let (path, position) = (view.path(), walked.position);
    match walked.ending {
        Ending::Waiting(0) if asked.is_older => findings.push(Finding::at(
            Kind::MissingEndMark,
            &path,
            position,
            "header 0x00000000",
            "header 0xc0000000, as there is a later file",
        )),
        Ending::Waiting(word) if word != 0 => findings.push(Finding::at(
            Kind::DeadHeader,
            &path,
            position,
            format!("header {word:#010x}"),
            "0, or a complete document",
        )),
        _ => {}
    }
    Ok(())
}
