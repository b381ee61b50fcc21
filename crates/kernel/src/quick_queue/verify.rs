//! Checking a Quick-Queue: every entry points to a message, in existing pages. Entries are filled
//! from the first on, so the walk ends at the first free one of the last page.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::format::entry::{ENTRY, State};
use super::format::producer::Producer;
use super::protocol::directory::{Form, Layout, Listing};
use super::protocol::entries::{Entries, Entry};
use super::protocol::pages::Pages;
use super::protocol::pending;
use crate::finding::{Finding, Kind, Report};
use crate::{Error, Result};

struct Check<'a> {
    dir: &'a Path,
    layout: Layout,
    index: Pages,
    /// Data pages that were checked.
    seen: HashSet<PathBuf>,
    report: Report,
}

/// Checks the files of a queue's directory; nothing is changed.
pub fn verify(dir: &Path, layout: Layout) -> Result<Report> {
    let index = Pages::index(dir, layout.form, layout.size);
    let mut check = Check { dir, layout, index, seen: HashSet::new(), report: Report::default() };
    if let Some(span) = Listing::of(dir)?.index(layout.form) {
        for page in span.lowest..=span.highest {
            check.page(page, page == span.highest)?;
        }
    }
    Ok(check.report)
}

impl Check<'_> {
    fn page(&mut self, page: u32, is_last: bool) -> Result<()> {
        let path = self.index.path(page);
        match self.index.open(page) {
            Ok(Some(_)) => self.report.files += 1,
            Ok(None) if is_last => return Ok(()), // just created
            Ok(None) => {
                self.missing(&path, "no such page");
                return Ok(());
            }
            Err(Error::Corrupt { found, .. }) => {
                self.missing(&path, &found);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let pages = self.index.clone();
        let mut entries = Entries::new(&pages);
        let start = pages.size().start_of(page);
        for index in (start..start + pages.size().bytes()).step_by(16) {
            let Some(entry) = entries.get(index)? else { break };
            if entry.stamp.state() == State::Free {
                return if is_last { Ok(()) } else { self.free(page, index) };
            }
            self.entry(&path, entry)?;
        }
        Ok(())
    }

    fn missing(&mut self, path: &Path, found: &str) {
        let expected = format!("a page of {} bytes", self.layout.size.bytes());
        self.report.findings.push(Finding::of(Kind::Page, path, found, expected));
    }

    /// Entries are taken in order: a free one is wrong if the next page has a taken one, and it is
    /// still free then.
    fn free(&mut self, page: u32, index: u64) -> Result<()> {
        let is_taken = |index| -> Result<bool> {
            let entry = Entries::new(&self.index).get(index)?;
            Ok(entry.is_some_and(|entry| entry.stamp.state() != State::Free))
        };
        if is_taken(self.layout.size.start_of(page + 1))? && !is_taken(index)? {
            self.wrong(&self.index.path(page), index, "a free entry before taken ones");
        }
        Ok(())
    }

    fn wrong(&mut self, path: &Path, index: u64, found: &str) {
        let position = self.layout.size.position(index);
        let finding = Finding::at(Kind::Entry, path, position, found, "an entry of a message");
        self.report.findings.push(finding);
    }

    fn entry(&mut self, path: &Path, entry: Entry) -> Result<()> {
        let producer = Producer::from_bits(entry.stamp.producer_bits());
        let producer = match (self.layout.form, producer) {
            (Form::Single, _) => None,
            (Form::Shared, Some(producer)) => Some(producer),
            (Form::Shared, None) => {
                self.wrong(path, entry.index, "an entry of no producer");
                return Ok(());
            }
        };
        match (entry.stamp.state(), producer) {
            (State::Complete, _) => self.message(path, producer, entry),
            (State::Claimed, Some(producer)) => self.pending(path, producer, entry),
            _ => {
                let found = format!("the stamp {:#x}", entry.stamp.word());
                self.wrong(path, entry.index, &found);
                Ok(())
            }
        }
    }

    fn message(&mut self, path: &Path, producer: Option<Producer>, entry: Entry) -> Result<()> {
        let length = u64::from(entry.stamp.length());
        if entry.end().is_none_or(|end| end > self.layout.size.capacity()) {
            let found = format!("a message of {length} bytes at {:#x}", entry.begin);
            self.wrong(path, entry.index, &found);
            return Ok(());
        }
        self.report.messages += 1;
        self.report.bytes += length + ENTRY;
        let data = Pages::data(self.dir, producer, self.layout.size);
        let mut parts = self.layout.size.parts(entry.begin, length);
        while let Some(part) = parts.next() {
            let page = data.path(part.page);
            if !self.seen.insert(page.clone()) {
                continue;
            }
            match data.open(part.page) {
                Ok(Some(_)) => self.report.files += 1,
                // A damaged length may span thousands of pages: one finding is enough.
                Ok(None) => {
                    let found = match parts.count() {
                        0 => "no such page".to_owned(),
                        more => format!("no such page, and {more} of the same message after it"),
                    };
                    self.missing(&page, &found);
                    return Ok(());
                }
                Err(Error::Corrupt { found, .. }) => self.missing(&page, &found),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn pending(&mut self, path: &Path, producer: Producer, entry: Entry) -> Result<()> {
        if pending::may_complete(self.dir, producer, entry)? {
            return Ok(());
        }
        // It may have been completed while its producer was checked.
        let again = Entries::new(&self.index).get(entry.index)?;
        if again.is_some_and(|again| again.stamp.state() == State::Claimed) {
            let position = self.layout.size.position(entry.index);
            let found = format!("a claim of the producer {producer}, which is closed");
            let expected = "a complete entry";
            let finding = Finding::at(Kind::PendingEntry, path, position, found, expected);
            self.report.findings.push(finding);
        }
        Ok(())
    }
}
