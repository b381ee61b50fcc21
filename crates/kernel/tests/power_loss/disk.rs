//! A disk that holds one queue: the content of the medium, and changes not yet written to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use quire_kernel::probe::recorder::Event;

use crate::random::Random;

const PAGE: u64 = 4096;
/// The unit that a disk writes atomically.
const SECTOR: usize = 512;
/// Written by a call, and lost without harm: the directories also show the length.
const DISPENSABLE: &str = ".cycle-length";

type Page = [u8; PAGE as usize];

/// The files' bytes that are on the medium, and later changes, by number.
#[derive(Clone, Default)]
pub struct Disk {
    files: Vec<Stored>,
    names: BTreeMap<String, Named>,
    /// Changes of names since their directory was synced.
    renames: Vec<Name>,
}

#[derive(Clone, Default)]
struct Stored {
    pages: BTreeMap<u64, Page>,
    len: u64,
    changes: Vec<Change>,
    /// The length with all changes.
    latest_len: u64,
}

#[derive(Clone)]
enum Change {
    Bytes(u64, Vec<u8>),
    Zeros(u64, u64),
    Len,
}

/// The target of a name.
#[derive(Clone, Copy)]
enum Named {
    File(usize),
    Directory,
}

#[derive(Clone)]
enum Name {
    Is(String, Named),
    Was(String, String),
}

/// Which of the loose parts survive.
pub enum Choice<'a> {
    /// The parts whose bit is set, in their latest state.
    Subset(usize),
    /// A random half of them, in their latest state.
    Random(&'a mut Random),
    /// Pages as they were at some time since the last sync, each sector at a time of its own.
    Torn(&'a mut Random),
}

impl Choice<'_> {
    fn keeps(&mut self, part: usize) -> bool {
        match self {
            Self::Subset(bits) => *bits >> part & 1 == 1,
            Self::Random(random) | Self::Torn(random) => random.once_in(2),
        }
    }
}

impl Disk {
    /// The disk after these changes.
    pub fn after(mut self, events: &[Event]) -> Self {
        for event in events {
            self.take(event);
        }
        self
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Opened(name) => {
                if self.find(name).is_none() {
                    self.files.push(Stored::default());
                    let file = Named::File(self.files.len() - 1);
                    self.renames.push(Name::Is(name.clone(), file));
                }
            }
            Event::Stored(name, position, bytes) => {
                self.file(name).changes.push(Change::Bytes(*position, bytes.clone()));
            }
            Event::ZeroedRange(name, start, end) => {
                self.file(name).changes.push(Change::Zeros(*start, *end));
            }
            Event::Resized(name, len) => {
                let file = self.file(name);
                file.changes.push(Change::Len);
                file.latest_len = *len;
            }
            Event::Renamed(from, to) => self.renames.push(Name::Was(from.clone(), to.clone())),
            Event::Synced(name) => {
                let file = self.file(name);
                *file = file.latest();
            }
            Event::MadeDirectory(name) => {
                self.renames.push(Name::Is(name.clone(), Named::Directory));
            }
            Event::SyncedDirectory(directory) => {
                let is_in = |change: &Name| parent_of(change.name()) == directory;
                let (synced, renames): (Vec<_>, _) =
                    std::mem::take(&mut self.renames).into_iter().partition(is_in);
                for change in &synced {
                    change.apply(&mut self.names);
                }
                self.renames = renames;
            }
            // The directory exists on every image.
            Event::SyncedParent(_) => {}
        }
    }

    fn latest_names(&self) -> BTreeMap<String, Named> {
        let mut names = self.names.clone();
        self.renames.iter().for_each(|change| change.apply(&mut names));
        names
    }

    fn find(&self, name: &str) -> Option<usize> {
        match self.latest_names().get(name) {
            Some(Named::File(number)) => Some(*number),
            _ => None,
        }
    }

    fn file(&mut self, name: &str) -> &mut Stored {
        let number = self.find(name).expect("a file that was opened");
        &mut self.files[number]
    }

    /// How many parts a power cut may keep or lose.
    pub fn loose(&self) -> usize {
        let parts = |file: &Stored| file.dirty().len() + usize::from(file.len != file.latest_len);
        self.renames.len() + self.files.iter().map(parts).sum::<usize>()
    }

    /// The content of the medium after a power cut.
    pub fn image(&self, choice: &mut Choice<'_>) -> Self {
        let mut part = 0;
        let mut keeps = |choice: &mut Choice<'_>| {
            part += 1;
            choice.keeps(part - 1)
        };
        let mut names = self.names.clone();
        for change in &self.renames {
            if keeps(choice) {
                change.apply(&mut names);
            }
        }
        let mut files = Vec::new();
        for file in &self.files {
            let longer = file.len != file.latest_len && keeps(choice);
            let len = if longer { file.latest_len } else { file.len };
            let mut pages = file.pages.clone();
            for number in file.dirty() {
                if keeps(choice) {
                    pages.insert(number, file.page(number, choice));
                }
            }
            pages.retain(|number, _| number * PAGE < len);
            files.push(Stored { pages, len, latest_len: len, changes: Vec::new() });
        }
        Self { files, names, renames: Vec::new() }
    }

    /// The content of the medium with all changes.
    pub fn latest(&self) -> Self {
        let files = self.files.iter().map(Stored::latest).collect();
        Self { files, names: self.latest_names(), renames: Vec::new() }
    }

    /// Writes the files into a directory, as if they had been written long ago.
    pub fn write(&self, dir: &Path) {
        std::fs::create_dir(dir).expect("a directory");
        // A directory sorts before its entries. If it is missing, so are they.
        for (name, named) in &self.names {
            let path = dir.join(name);
            match named {
                Named::Directory => std::fs::create_dir(path).expect("a directory"),
                Named::File(_) if !path.parent().is_some_and(Path::is_dir) => {}
                Named::File(number) => self.files[*number].write(&path),
            }
        }
    }

    /// Panics unless the directory equals the result of the recorded changes, except for the
    /// content of files that readers can do without.
    pub fn assert_same(&self, dir: &Path) {
        for (name, named) in self.latest_names() {
            let Named::File(number) = named else { continue };
            if name.ends_with(DISPENSABLE) {
                continue;
            }
            let file = self.files[number].latest();
            let found = std::fs::read(dir.join(&name)).expect("a file");
            assert_eq!(found.len() as u64, file.len, "{name}");
            for (number, page) in found.chunks(PAGE as usize).enumerate() {
                let expected = file.pages.get(&(number as u64)).unwrap_or(&[0; PAGE as usize]);
                assert!(page == &expected[..page.len()], "unrecorded change: {name} page {number}");
            }
        }
    }
}

impl Name {
    fn name(&self) -> &str {
        match self {
            Self::Is(name, _) | Self::Was(name, _) => name,
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, Named>) {
        match self {
            Self::Is(name, is) => drop(names.insert(name.clone(), *is)),
            Self::Was(from, to) => {
                if let Some(number) = names.remove(from) {
                    names.insert(to.clone(), number);
                }
            }
        }
    }
}

impl Stored {
    /// Pages that changed since they were synced.
    fn dirty(&self) -> BTreeSet<u64> {
        let mut dirty = BTreeSet::new();
        for change in &self.changes {
            match change {
                Change::Bytes(start, bytes) if !bytes.is_empty() => {
                    dirty.extend(start / PAGE..=(start + bytes.len() as u64 - 1) / PAGE);
                }
                Change::Zeros(start, end) => {
                    dirty.extend(
                        self.written()
                            .filter(|page| page * PAGE < *end && (page + 1) * PAGE > *start),
                    );
                }
                _ => {}
            }
        }
        dirty
    }

    /// Pages that were ever stored to.
    fn written(&self) -> impl Iterator<Item = u64> {
        let stored = self.changes.iter().filter_map(|change| match change {
            Change::Bytes(start, bytes) if !bytes.is_empty() => {
                Some(start / PAGE..=(start + bytes.len() as u64 - 1) / PAGE)
            }
            _ => None,
        });
        let all: BTreeSet<u64> = stored.flatten().chain(self.pages.keys().copied()).collect();
        all.into_iter()
    }

    fn page_after(&self, number: u64, count: usize) -> Page {
        let mut page = self.pages.get(&number).copied().unwrap_or([0; PAGE as usize]);
        self.changes[..count]
            .iter()
            .for_each(|change| apply(change, &mut page, number * PAGE, u64::MAX));
        page
    }

    fn page(&self, number: u64, choice: &mut Choice<'_>) -> Page {
        let latest = self.page_after(number, self.changes.len());
        let Choice::Torn(random) = choice else { return latest };
        let touching: Vec<usize> = (0..self.changes.len())
            .filter(|at| touches(&self.changes[*at], number * PAGE))
            .collect();
        let mut torn = latest;
        let pick = |random: &mut Random| {
            let at = random.below(touching.len() as u64 + 1) as usize;
            let count = touching.get(at).copied().unwrap_or(self.changes.len());
            let mut page = self.page_after(number, count);
            // The next change may be half done.
            if let Some(change) = self.changes.get(count) {
                apply(change, &mut page, number * PAGE, random.below(64) * 8);
            }
            page
        };
        let whole = pick(random);
        let each = random.once_in(2);
        for sector in 0..PAGE as usize / SECTOR {
            let range = sector * SECTOR..(sector + 1) * SECTOR;
            let page = if each { pick(random) } else { whole };
            torn[range.clone()].copy_from_slice(&page[range]);
        }
        torn
    }

    /// The file once all changes are on the medium.
    fn latest(&self) -> Self {
        let mut pages = self.pages.clone();
        for number in self.dirty() {
            pages.insert(number, self.page_after(number, self.changes.len()));
        }
        let len = self.latest_len;
        Self { pages, len, latest_len: len, changes: Vec::new() }
    }

    fn write(&self, path: &Path) {
        let file = File::create_new(path).expect("a new file");
        file.set_len(self.len).expect("room");
        for (number, page) in &self.pages {
            if page.iter().any(|byte| *byte != 0) {
                let end = (self.len - number * PAGE).min(PAGE) as usize;
                file.write_all_at(&page[..end], number * PAGE).expect("room");
            }
        }
        let long_ago = SystemTime::now() - Duration::from_secs(400 * 86_400);
        file.set_modified(long_ago).expect("a time");
    }
}

fn parent_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn touches(change: &Change, page: u64) -> bool {
    match change {
        Change::Bytes(start, bytes) => *start < page + PAGE && start + bytes.len() as u64 > page,
        Change::Zeros(start, end) => *start < page + PAGE && *end > page,
        Change::Len => false,
    }
}

/// Applies at most `most` bytes of a change to the page that starts at `page`.
fn apply(change: &Change, into: &mut Page, page: u64, most: u64) {
    let (start, end) = match change {
        Change::Bytes(start, bytes) => (*start, start + (bytes.len() as u64).min(most)),
        Change::Zeros(start, end) => (*start, *end),
        Change::Len => return,
    };
    for position in start.max(page)..end.min(page + PAGE) {
        let byte = match change {
            Change::Bytes(start, bytes) => bytes[(position - start) as usize],
            _ => 0,
        };
        into[(position - page) as usize] = byte;
    }
}
