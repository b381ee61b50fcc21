//! Golden queues with one bit changed or one file truncated, and what may be read from them.
//!
//! The format has no checksums. A bit of a payload changes that payload and nothing else; a bit of
//! a header moves documents, and reading follows the changed headers; a bit anywhere else does not
//! affect reading, or is refused.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use quire_kernel::Error;

use crate::bounded;
use crate::model::{End, Walk};
use crate::reading::{self, Messages};
use crate::sample::{NOW_MS, TABLE};
use crate::targets::difference;

const APPENDED: &[u8] = b"appended to what was left";
/// Bytes after the documents that are damaged too: the next header and some of the zeros.
const BEHIND: usize = 16;
/// Slots at the start of an index array that are damaged like everything else.
const FIRST_SLOTS: usize = 16;
/// Maximum number of other slots damaged in an array, fewer in the short form.
const ALIKE: usize = 64;

/// A golden queue.
pub struct Golden {
    /// Its directory under `tests/golden`.
    pub dir: PathBuf,
    /// Its roll files and its table, in the order of their names.
    pub files: Vec<(String, Vec<u8>)>,
    /// Its messages.
    pub whole: Messages,
    walks: Vec<Option<Walk>>,
}

/// The structure that a bit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The payload of the message of this number in its file.
    Payload(usize),
    /// A header of a document, or the one after the last.
    Header,
    /// The first document of a roll file.
    FileHeader,
    /// Hints for finding messages, and unused bytes.
    Other,
    /// The table.
    Table,
}

impl Golden {
    /// Reads a queue; None if `dir` is not a queue, or has no messages.
    #[must_use]
    pub fn open(dir: &Path) -> Option<Self> {
        let names = std::fs::read_dir(dir).ok()?.map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| is_roll_file(name) || name == TABLE);
        names.sort();
        let read = |name: String| {
            let data = std::fs::read(dir.join(&name)).unwrap();
            (name, data)
        };
        let files: Vec<_> = names.into_iter().map(read).collect();
        let walks = files.iter().map(|(name, data)| walk(name, data)).collect();
        let queue = reading::open(dir, NOW_MS).ok()?;
        let whole = reading::forward(&queue, usize::MAX).messages;
        let golden = Self { dir: dir.to_path_buf(), files, whole, walks };
        assert_eq!(payloads(&golden.whole), golden.expected(None).0, "{}", dir.display());
        (!golden.whole.is_empty()).then_some(golden)
    }

    /// The payloads that the headers give, with one file changed, and whether they end at damage.
    fn expected(&self, now: Option<(usize, &[u8])>) -> (Vec<Vec<u8>>, bool) {
        let mut found = Vec::new();
        for (number, (name, data)) in self.files.iter().enumerate() {
            let changed = now.filter(|(changed, _)| *changed == number).map(|(_, data)| data);
            let anew = changed.map(|data| walk(name, data));
            let Some(walk) = anew.as_ref().unwrap_or(&self.walks[number]) else {
                let is_ready = |data: &[u8]| data.get(3).is_some_and(|byte| byte & 0x80 == 0);
                // A file truncated to nothing is skipped.
                let is_lost = |now: &[u8]| {
                    now.len() == data.len()
                        && self.has_messages_in(number)
                        && self.has_later(number)
                };
                if changed.is_some_and(|data| is_ready(data) || is_lost(data)) {
                    return (found, true); // refused when it is reached
                }
                continue;
            };
            let now = changed.unwrap_or(data);
            found.extend(walk.payloads(now));
            let hides = walk.end == End::Open && self.has_later(number) && walk.hides_messages(now);
            if walk.end == End::Damaged || hides {
                return (found, true);
            }
        }
        (found, false)
    }

    fn has_messages_in(&self, file: usize) -> bool {
        self.walks[file].as_ref().is_some_and(|walk| walk.messages().next().is_some())
    }

    /// Whether a later file has messages.
    fn has_later(&self, file: usize) -> bool {
        (file + 1..self.files.len()).any(|later| self.has_messages_in(later))
    }

    /// Positions of a file in which flips are tried: one in `stride`, and fewer in the slots of
    /// index arrays, which are many and alike.
    #[must_use]
    pub fn positions(&self, file: usize, stride: usize) -> Vec<usize> {
        let (_, data) = &self.files[file];
        let walk = self.walks[file].as_ref();
        let content = data.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        let end = (walk.map_or(content, |walk| walk.tail) + BEHIND).min(data.len());
        let slots = walk.map(later_slots).unwrap_or_default();
        let is_chosen = |position: &usize| {
            let alike = slots.iter().find(|slots| slots.contains(position));
            let stride =
                alike.map_or(stride, |slots| (stride * 32).max(slots.len() / ALIKE).max(1));
            // The offset has every byte of a word chosen somewhere.
            (position + position / stride).is_multiple_of(stride)
        };
        (0..end).filter(is_chosen).collect()
    }

    /// Lengths to which a file is cut: every length, or one in `stride` except where a structure
    /// starts or ends.
    #[must_use]
    pub fn lengths(&self, file: usize, stride: usize) -> Vec<usize> {
        let (_, data) = &self.files[file];
        let walk = self.walks[file].as_ref();
        let end = walk.map_or(4096, |walk| walk.tail + BEHIND).min(data.len());
        let slots = walk.map(later_slots).unwrap_or_default();
        let is_chosen = |length: &usize| {
            let alike = slots.iter().find(|slots| slots.contains(length));
            let stride = alike.map_or(stride, |slots| stride.max(slots.len() / 64));
            length.is_multiple_of(stride)
        };
        let mut lengths: Vec<_> = (0..end).filter(is_chosen).collect();
        for (number, document) in walk.iter().flat_map(|walk| walk.documents.iter().enumerate()) {
            let last = walk.map_or(0, |walk| walk.documents.len());
            if stride > 1 && (4..last.saturating_sub(6)).contains(&number) {
                continue;
            }
            let edges = [document.position, document.payload.start, document.payload.end];
            lengths.extend(edges.iter().flat_map(|edge| edge.saturating_sub(1)..=edge + 3));
        }
        lengths.extend([end, 4095, 4096, 4097, 65_536, data.len().saturating_sub(1)]);
        lengths.retain(|length| *length < data.len());
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    fn part(&self, file: usize, position: usize) -> Part {
        let Some(walk) = &self.walks[file] else { return Part::Table };
        if position >= walk.tail {
            return if position < walk.tail + 4 { Part::Header } else { Part::Other };
        }
        let mut message = 0;
        for document in &walk.documents {
            if (document.position..document.payload.start).contains(&position) {
                return Part::Header;
            }
            if document.payload.contains(&position) {
                return match document {
                    document if document.position == 0 => Part::FileHeader,
                    document if document.is_metadata => Part::Other,
                    _ => Part::Payload(message),
                };
            }
            message += usize::from(!document.is_metadata);
        }
        Part::Other
    }

    /// The number in the queue of a file's first message.
    fn first_of(&self, file: usize) -> usize {
        self.walks[..file].iter().flatten().map(|walk| walk.messages().count()).sum()
    }

    /// Reads a copy in `dir` in which one bit is changed.
    pub fn flip(&self, dir: &Path, file: usize, position: usize, bit: u32) {
        let (name, data) = &self.files[file];
        let mut now = data.clone();
        now[position] ^= 1 << bit;
        put(&dir.join(name), position, now[position]);
        let most = (8 << 20) + 16 * self.bytes();
        bounded(most, || self.read_flipped(dir, file, position, &now));
        put(&dir.join(name), position, data[position]);
    }

    fn read_flipped(&self, dir: &Path, file: usize, position: usize, now: &[u8]) {
        let part = self.part(file, position);
        let queue = match reading::open(dir, NOW_MS) {
            Ok(queue) => queue,
            Err(error) => {
                let may_refuse = matches!(part, Part::Table | Part::FileHeader)
                    || part == Part::Header && position < 4;
                assert!(may_refuse, "refused: {part:?} {error}");
                return;
            }
        };
        let read = reading::forward(&queue, usize::MAX);
        if part == Part::Table {
            let same_epoch =
                reading::open(&self.dir, NOW_MS).unwrap().epoch_ms() == queue.epoch_ms();
            let mut pairs = read.messages.iter().zip(&self.whole);
            let is_same = |((index, data), (whole, wanted)): (&(i64, _), &(i64, _))| {
                data == wanted && (index == whole || !same_epoch)
            };
            assert!(pairs.all(is_same), "{}", difference(&read, &self.whole));
            reading::the_rest(&queue);
            return;
        }
        let (expected, is_damaged) = self.expected(Some((file, now)));
        assert!(payloads(&read.messages) == expected, "{}", difference(&read, &self.whole));
        assert!(read.error.is_some() || !is_damaged, "ends without an error");
        let mut whole = self.whole.clone();
        match part {
            Part::Payload(message) => {
                let document = self.walks[file].as_ref().unwrap().messages().nth(message).unwrap();
                whole[self.first_of(file) + message].1 = now[document.payload.clone()].to_vec();
            }
            Part::FileHeader if read.error.is_some() => return, // refused when it was reached
            Part::Header => {
                reading::the_rest(&queue);
                let _ = reading::backward(&queue, usize::MAX);
                return;
            }
            _ => {}
        }
        assert!(read.messages == whole, "{part:?}: {}", difference(&read, &whole));
        let mut back = reading::backward(&queue, whole.len());
        back.messages.reverse();
        assert!(back.messages == whole, "{part:?} backward: {}", difference(&back, &whole));
        for (index, payload) in whole.iter().step_by(1 + whole.len() / 8) {
            assert_eq!(reading::at(&queue, *index).unwrap().as_ref(), Some(payload), "{part:?}");
        }
        assert_eq!(queue.entry_count().unwrap(), whole.len() as u64);
    }

    /// Reads a copy in `dir` in which one file is cut to `length` bytes; appends to it, too, if
    /// asked to.
    pub fn cut(&self, dir: &Path, file: usize, length: usize, appends: bool) {
        let (name, data) = &self.files[file];
        let path = dir.join(name);
        std::fs::write(&path, &data[..length]).unwrap();
        let most = (8 << 20) + 16 * self.bytes();
        bounded(most, || self.read_cut(dir, file, &data[..length]));
        if appends {
            bounded(most, || self.append_to_cut(dir));
            self.copy_to(dir);
        } else {
            std::fs::write(&path, data).unwrap();
        }
    }

    fn read_cut(&self, dir: &Path, file: usize, now: &[u8]) {
        let Ok(queue) = reading::open(dir, NOW_MS) else { return };
        let read = reading::forward(&queue, self.whole.len());
        let is_written = |found: &(i64, Vec<u8>)| self.whole.binary_search(found).is_ok();
        assert!(read.messages.iter().all(is_written), "{}", difference(&read, &self.whole));
        if self.walks[file].is_some() && read.error.is_none() {
            let (expected, _) = self.expected(Some((file, now)));
            assert!(payloads(&read.messages) == expected, "{}", difference(&read, &self.whole));
        }
        let back = reading::backward(&queue, self.whole.len());
        assert!(back.messages.iter().all(is_written), "{}", difference(&back, &self.whole));
        for (index, payload) in self.whole.iter().step_by(1 + self.whole.len() / 4) {
            if let Ok(Some(found)) = reading::at(&queue, *index) {
                assert_eq!(&found, payload);
            }
        }
        reading::the_rest(&queue);
    }

    fn append_to_cut(&self, dir: &Path) {
        let appended = reading::append(dir, NOW_MS, APPENDED);
        let Ok(queue) = reading::open(dir, NOW_MS) else { return };
        let read = reading::forward(&queue, self.whole.len() + 1);
        let is_new = |(index, data): &(i64, Vec<u8>)| {
            data == APPENDED && appended.as_ref().is_ok_and(|appended| appended == index)
        };
        let is_right = |found| is_new(found) || self.whole.binary_search(found).is_ok();
        assert!(read.messages.iter().all(is_right), "{}", difference(&read, &self.whole));
        if let Err(error) = appended {
            assert!(!matches!(error, Error::LockTimeout { .. }), "{error}");
        }
    }

    /// Writes the files into `dir`, and removes all others.
    pub fn copy_to(&self, dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, data) in &self.files {
            std::fs::write(dir.join(name), data).unwrap();
        }
    }

    /// The length of its files.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|(_, data)| data.len()).sum()
    }
}

fn walk(name: &str, data: &[u8]) -> Option<Walk> {
    is_roll_file(name).then(|| Walk::new(data)).flatten()
}

/// Whether a file of this name is a roll file.
#[must_use]
pub fn is_roll_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "cq4")
}

fn payloads(messages: &Messages) -> Vec<Vec<u8>> {
    messages.iter().map(|(_, payload)| payload.clone()).collect()
}

/// The slots of each index array but the first ones.
fn later_slots(walk: &Walk) -> Vec<std::ops::Range<usize>> {
    let slots = 8 * walk.layout.index_count as usize;
    let later = |end: usize| end - slots + (8 * FIRST_SLOTS).min(slots)..end;
    walk.arrays().map(|array| later(array.payload.end)).collect()
}

fn put(path: &Path, position: usize, byte: u8) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(position as u64)).unwrap();
    file.write_all(&[byte]).unwrap();
}
