//! The content of a copy of a queue whose writers are still running.
//!
//! The index is read up to its end first. Data is only appended to, and was stored before the entry
//! that names it: so the copy has the data of each producer up to the end of its last message.
//!
//! In the copy no producer is alive. So what readers would take from a producer's profile is stored
//! in the copy: an entry that was pending is complete where its message is proven, and each profile
//! is that of a producer which was closed after its last message.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::format::entry::{ENTRY, Stamp, State};
use super::format::files::{self as names, Name};
use super::format::producer::Producer;
use super::format::profile::{PROFILE, Profile};
use super::protocol::directory::{Form, Layout, Listing, Span, names_in};
use super::protocol::end::{end_of_index, is_taken};
use super::protocol::entries::{Entries, Entry};
use super::protocol::pages::Pages;
use super::protocol::pending::{self, Verdict};
use crate::snapshot::{File, Patch, Snapshot};
use crate::{Error, Result};

struct Copy<'a> {
    dir: &'a Path,
    layout: Layout,
    index: Pages,
    /// Where the data of each producer ends; the key None is the single writer.
    ends: HashMap<Option<Producer>, u64>,
    /// The newest complete entry of each producer.
    newest: HashMap<Producer, Entry>,
    pending: Vec<(Producer, Entry)>,
    snapshot: Snapshot,
}

/// The current content of the queue.
pub fn snapshot(dir: &Path, layout: Layout) -> Result<Snapshot> {
    let index = Pages::index(dir, layout.form, layout.size);
    let mut copy = Copy {
        dir,
        layout,
        index,
        ends: HashMap::new(),
        newest: HashMap::new(),
        pending: Vec::new(),
        snapshot: Snapshot::default(),
    };
    let listing = Listing::of(dir)?;
    if let Some(span) = listing.index(layout.form) {
        copy.entries(span)?;
    }
    for (producer, entry) in std::mem::take(&mut copy.pending) {
        copy.settle(producer, entry)?;
    }
    copy.add_data()?;
    copy.add_profiles(listing.producers());
    Ok(copy.snapshot)
}

impl Copy<'_> {
    fn entries(&mut self, span: Span) -> Result<()> {
        let (size, form) = (self.layout.size, self.layout.form);
        let pages = self.index.clone();
        let end = end_of_index(&pages, Some(span), |stamp| is_taken(form, stamp))?;
        // Two readers of entries, so that the address is read after the stamp was seen complete.
        let (mut stamps, mut addresses) = (Entries::new(&pages), Entries::new(&pages));
        for at in (size.start_of(span.lowest)..end).step_by(16) {
            let stamp = stamps.get(at)?.map(|entry| entry.stamp).filter(|it| *it != Stamp::FREE);
            let Some((stamp, entry)) = stamp.zip(addresses.get(at)?) else {
                return Err(self.no_entry(at));
            };
            self.add(Entry { stamp, ..entry });
        }
        let last = size.page(end.saturating_sub(ENTRY).max(size.start_of(span.lowest)));
        for name in names_in(self.dir)? {
            let (Name::SingleIndex(page) | Name::SharedIndex(page)) = name else { continue };
            if page <= last {
                self.add_page(&pages, page, end);
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        let producer = Producer::from_bits(entry.stamp.producer_bits());
        match (self.layout.form, entry.stamp.state(), producer) {
            (Form::Single, State::Complete, _) => self.add_message(None, entry),
            (Form::Shared, State::Complete, Some(producer)) => {
                self.add_message(Some(producer), entry);
            }
            (Form::Shared, State::Claimed, Some(producer)) => self.pending.push((producer, entry)),
            _ => {} // damage, which a verification of the copy will find
        }
    }

    fn add_message(&mut self, producer: Option<Producer>, entry: Entry) {
        let Some(message_end) = entry.end() else { return };
        let end = self.ends.entry(producer).or_default();
        *end = message_end.max(*end);
        self.snapshot.messages += 1;
        self.snapshot.last_index = self.snapshot.last_index.max(Some(entry.index));
        if let Some(producer) = producer {
            let newest = self.newest.entry(producer).or_insert(entry);
            if newest.index <= entry.index {
                *newest = entry;
            }
        }
    }

    /// Settles an entry that was claimed when it was read.
    fn settle(&mut self, producer: Producer, entry: Entry) -> Result<()> {
        let begin = match pending::judge(self.dir, &self.index, producer, entry)? {
            Verdict::Begins(begin) => Some(begin),
            Verdict::Abandoned | Verdict::Wait => None,
        };
        let read = || Entries::new(&self.index).get(entry.index);
        let is_complete = read()?.is_some_and(|now| now.stamp.state() == State::Complete);
        let settled = match (is_complete, begin) {
            (true, _) => read()?.unwrap_or(entry),
            (false, Some(begin)) => Entry { begin, stamp: entry.stamp.completed(), ..entry },
            (false, None) => entry,
        };
        let position = self.layout.size.position(entry.index);
        let name = self.name_of(&self.index, self.layout.size.page(entry.index));
        let bytes = [settled.begin.to_le_bytes(), settled.stamp.word().to_le_bytes()].concat();
        self.snapshot.patches.push(Patch { name, position, bytes });
        if settled.stamp.state() == State::Complete {
            self.add_message(Some(producer), settled);
        }
        Ok(())
    }

    fn add_data(&mut self) -> Result<()> {
        for (producer, end) in self.ends.clone() {
            let pages = Pages::data(self.dir, producer, self.layout.size);
            for name in names_in(pages.dir())? {
                if let Name::Data(page) = name
                    && self.layout.size.start_of(page) < end
                {
                    self.add_page(&pages, page, end);
                }
            }
        }
        Ok(())
    }

    fn add_profiles(&mut self, known: &[Producer]) {
        let mut producers: Vec<_> = known.iter().chain(self.newest.keys()).copied().collect();
        producers.sort_unstable_by_key(|producer| producer.bits());
        producers.dedup();
        for producer in producers {
            let newest = self.newest.get(&producer);
            let (end, last) = newest.map_or((0, 0), |it| (it.end().unwrap_or(0), it.index));
            let profile = Profile { ends: [end; 2], last, attempt: 0 };
            let name = PathBuf::from(format!("{producer}.{}", names::PROFILE));
            let bytes = profile.bytes().to_vec();
            self.snapshot.files.push(File { name: name.clone(), used: 0, length: PROFILE });
            self.snapshot.patches.push(Patch { name, position: 0, bytes });
        }
    }

    fn add_page(&mut self, pages: &Pages, page: u32, end: u64) {
        let length = pages.size().bytes();
        let used = end.saturating_sub(pages.size().start_of(page)).min(length);
        let name = self.name_of(pages, page);
        self.snapshot.files.push(File { name, used, length });
    }

    /// The path of a page below the queue's directory.
    fn name_of(&self, pages: &Pages, page: u32) -> PathBuf {
        let path = pages.path(page);
        path.strip_prefix(self.dir).unwrap_or(&path).to_path_buf()
    }

    #[cold]
    fn no_entry(&self, index: u64) -> Error {
        let size = self.layout.size;
        Error::corrupt(
            "index entries are missing",
            &self.index.path(size.page(index)),
            size.position(index),
            "no page, or a free entry before taken ones",
            "an entry of a message (after a power cut, an appender ends the queue here)",
        )
    }
}
