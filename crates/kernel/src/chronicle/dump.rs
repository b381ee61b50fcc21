//! Every document of a file as text, byte for byte as Java's `DumpMain` shows it (`docs/format.md`
//! §8.9). A dump is produced in pieces, so a file of any length needs little memory.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use quire_wire::text::{hex, number, yaml};

use super::format::document::{self, HEADER_LEN};
use super::format::roll_cycle::{SUFFIX, is_roll_file_name};
use super::format::table;
use super::protocol::compressed;
use super::protocol::locate::{self, Located};
use super::protocol::roll_file::{Slot, View};
use super::protocol::table::store::TableStore;
use super::queue::bases::{Stored, base_in};
use super::queue::handle::Queue;
use crate::os::detached::Detached;
use crate::os::{interrupt, paths};
use crate::sealed::cipher::Encryption;
use crate::sealed::dictionary::Dictionaries;
use crate::sealed::difference::Base;
use crate::sealed::packed;
use crate::sealed::packing::ZSTD_LEVEL;
use crate::{Error, Result};

/// How many bytes decide whether a message is already text.
const TEXT_SAMPLE: usize = 32;
/// The text at which an array of positions with trailing zeros ends.
const SPARE_END: &str = ", 0\n]\n";
const SPARE: &str = ", 0";

/// Dumps every roll file in the order of their cycles, then the table store.
pub fn dump(queue: &Queue) -> Result<String> {
    let mut out = String::new();
    for cycle in queue.cycles()? {
        title(&mut out, &queue.place_of_cycle(cycle)?);
        Dump::new(source(queue.view(cycle)?)).put_all(&mut out)?;
    }
    if let Some(table) = queue.table() {
        title(&mut out, table.path());
        Dump::new(Source::Table(table)).put_all(&mut out)?;
    }
    Ok(out)
}

fn title(out: &mut String, path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let _ = writeln!(out, "## {name}");
}

/// The documents of a file.
enum Source<'a> {
    Table(&'a TableStore),
    Owned(Arc<TableStore>),
    /// A roll file, with its messages' dictionaries.
    Roll(Box<Roll>),
    Unready,
}

fn source(view: Option<View>) -> Source<'static> {
    view.map_or(Source::Unready, |view| {
        let folder = view.file().window.path().parent().unwrap_or(Path::new("."));
        let dictionaries = Dictionaries::new(folder, ZSTD_LEVEL, Encryption::No);
        Source::Roll(Box::new(Roll { view, dictionaries, base: None }))
    })
}

/// A roll file, with the state needed to decode its messages.
struct Roll {
    view: View,
    dictionaries: Dictionaries,
    /// The last base that was read, and its sequence.
    base: Option<(u64, Base)>,
}

impl Roll {
    /// The decoded payload of a message that is stored transformed; None if it cannot be decoded.
    fn unpacked(&mut self, stored: &[u8], sequence: u64) -> Result<Option<Vec<u8>>> {
        let Some(difference) = packed::difference(stored) else {
            return packed::unpack(stored, 0, &self.dictionaries);
        };
        let number = sequence.wrapping_sub(difference.distance.into());
        let is_known = |(of, base): &(u64, Base)| *of == number && base.sum() == difference.sum;
        if !self.base.as_ref().is_some_and(is_known) {
            let at = Stored { index: sequence.cast_signed(), sequence, difference };
            let dictionaries = &self.dictionaries;
            let open = |stored: &[u8]| packed::unpack(stored, 0, dictionaries);
            self.base = Some((number, base_in(&mut self.view, at, open)?));
        }
        let Some((_, base)) = &self.base else { return Ok(None) };
        difference.restored(base).map(Some).map_err(Error::Wire)
    }
}

/// The dump of one file.
pub struct Dump<'a> {
    source: Source<'a>,
    position: u64,
    sequence: Option<u64>,
    /// The dump ends before this message.
    past: Option<u64>,
    is_over: bool,
}

impl Dump<'static> {
    /// The dump of a roll file or a table store, distinguished by name.
    pub fn open(path: &Path, may_wait: &mut Detached) -> Result<Self> {
        paths::check_local(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_table = name == table::FILE_NAME;
        if !is_table && !is_roll_file_name(&name) {
            let why = format!("neither {} nor a *{SUFFIX} file", table::FILE_NAME);
            return Err(Error::NotAQueue { why, path: path.to_path_buf() });
        }
        std::fs::metadata(path).map_err(|error| Error::io("cannot open", path, error))?;
        Ok(Self::new(if is_table {
            TableStore::open_file_read_only(path, may_wait)?.map_or(Source::Unready, Source::Owned)
        } else {
            let file = compressed::open_either(path, 0, &mut || interrupt::check(may_wait))?;
            source(file.map(|file| View::new(Arc::new(file))))
        }))
    }

    /// Leaves out the documents of a roll file before the message numbered `range.start`, unless
    /// that is the first, and those after the last message of the range.
    pub fn limit(&mut self, range: Range<u64>) -> Result<()> {
        let Source::Roll(roll) = &mut self.source else { return Ok(()) };
        self.past = Some(range.end);
        if range.start > 0 {
            match locate::locate(&mut roll.view, range.start)? {
                Located::Found(position) => self.position = position,
                _ => self.is_over = true,
            }
            self.sequence = Some(range.start - 1);
        }
        Ok(())
    }
}

impl<'a> Dump<'a> {
    const fn new(source: Source<'a>) -> Self {
        Self { source, position: 0, sequence: None, past: None, is_over: false }
    }

    /// Appends further text until `out` holds `enough` bytes; false at the end of the file.
    pub fn put_more(&mut self, out: &mut String, enough: usize) -> Result<bool> {
        while !self.is_over && out.len() < enough {
            if self.past.is_some_and(|past| next_number(self.sequence) >= past) {
                self.is_over = true;
                break;
            }
            self.is_over = match &mut self.source {
                Source::Table(table) => {
                    put_entry(out, table, &mut self.position, &mut self.sequence)
                }
                Source::Owned(table) => {
                    put_entry(out, table, &mut self.position, &mut self.sequence)
                }
                Source::Roll(roll) => {
                    put_document(out, roll, &mut self.position, &mut self.sequence)?
                }
                Source::Unready => {
                    out.push_str("# no ready header\n");
                    true
                }
            };
        }
        Ok(!self.is_over)
    }

    fn put_all(mut self, out: &mut String) -> Result<()> {
        self.put_more(out, usize::MAX).map(drop)
    }
}

/// Puts the entry at `position`, or the end of the table: then it returns true.
fn put_entry(
    out: &mut String,
    table: &TableStore,
    position: &mut u64,
    sequence: &mut Option<u64>,
) -> bool {
    let cells = table.cells();
    let left = cells.len().saturating_sub(*position);
    if left < HEADER_LEN {
        return true;
    }
    let word = cells.load_header_acquire(*position);
    let found = Found::new(word, *position, left);
    if !found.put_head(out, sequence) {
        return true;
    }
    let payload = cells.copy_out_relaxed(*position + HEADER_LEN, u64::from(found.length));
    found.put_payload(out, &payload);
    *position = document::next(*position, found.length, true);
    false
}

/// Puts the document at `position`, or the end of the file: then it returns true.
fn put_document(
    out: &mut String,
    roll: &mut Roll,
    position: &mut u64,
    sequence: &mut Option<u64>,
) -> Result<bool> {
    let view = &mut roll.view;
    let slot = view.slot(*position);
    let left = view.file().window.file_len().saturating_sub(*position);
    if left < HEADER_LEN {
        return Ok(true);
    }
    let (word, next) = match slot {
        Ok(Slot::Document(found)) => (document::word(found.length, found.is_metadata), found.next),
        Ok(Slot::EndOfData) => (document::END_OF_DATA, *position),
        Ok(Slot::Waiting(word)) => {
            let length = word & document::LENGTH_MASK;
            (word, document::next(*position, length, view.file().layout.aligned))
        }
        Err(error @ (Error::Corrupt { .. } | Error::Hole { .. })) => {
            let _ = writeln!(out, "# {error}");
            return Ok(true);
        }
        Err(error) => return Err(error),
    };
    let found = Found::new(word, *position, left);
    if !found.put_head(out, sequence) {
        return Ok(true);
    }
    match view.copied(*position + HEADER_LEN, u64::from(found.length))? {
        Some(payload) => {
            found.put_payload(out, &unpacked(roll, word, payload, sequence.unwrap_or(0)));
        }
        None => out.push_str("# a hole that the disk has no room for\n\n"),
    }
    *position = next;
    Ok(false)
}

/// The content of a compressed message, or its stored bytes if they do not decompress.
fn unpacked(roll: &mut Roll, word: u32, payload: Vec<u8>, sequence: u64) -> Vec<u8> {
    let is_message = word & (document::NOT_COMPLETE | document::META_DATA) == 0;
    if !is_message || !packed::is_packed(&payload) {
        return payload;
    }
    match roll.unpacked(&payload, sequence) {
        Ok(Some(found)) => found,
        _ => payload,
    }
}

/// A header word, and where it was found.
struct Found {
    word: u32,
    position: u64,
    length: u32,
    /// Bytes after the word.
    left: u64,
}

impl Found {
    const fn new(word: u32, position: u64, left: u64) -> Self {
        Self { word, position, length: word & document::LENGTH_MASK, left: left - HEADER_LEN }
    }

    /// Puts the lines before the payload; false if there is no payload.
    fn put_head(&self, out: &mut String, sequence: &mut Option<u64>) -> bool {
        let is_ready = self.word & document::NOT_COMPLETE == 0;
        let is_metadata = self.word & document::META_DATA != 0;
        let is_over = self.length == 0;
        if self.word != document::NOT_INITIALIZED {
            if is_ready && !is_metadata {
                *sequence = Some(next_number(*sequence));
            }
            if self.position > 0 {
                out.push_str("# position: ");
                number::put_int(out, self.position.cast_signed());
                out.push_str(", header: ");
                number::put_int(out, sequence.map_or(-1, u64::cast_signed));
                match self.word {
                    document::END_OF_DATA => out.push_str(" EOF"),
                    _ if !is_ready => {
                        let _ = write!(out, " or {}", next_number(*sequence));
                    }
                    _ => {}
                }
                out.push('\n');
            }
            if u64::from(self.length) > self.left {
                let (length, left) = (self.length, self.left);
                let _ =
                    writeln!(out, "#  has a 4 byte size prefix, {length} > {left} len is {length}");
                return false;
            }
            out.push_str(match (is_ready, is_metadata) {
                (true, false) => "--- !!data",
                (true, true) => "--- !!meta-data",
                (false, false) => "--- !!not-ready-data",
                (false, true) => "--- !!not-ready-meta-data",
            });
            if is_over {
                out.push_str(if self.word == document::END_OF_DATA { " #binary\n" } else { "\n" });
            }
        }
        if is_over {
            let _ = write!(out, "...\n# {} bytes remaining\n\n", self.left);
        }
        !is_over
    }

    fn put_payload(&self, out: &mut String, payload: &[u8]) {
        let is_text = |byte: &u8| (b' '..0x80).contains(byte) || *byte == b'\n';
        let is_binary = !payload[..payload.len().min(TEXT_SAMPLE)].iter().all(is_text);
        out.push_str(if is_binary { " #binary\n" } else { "\n" });
        let start = out.len();
        if !is_binary {
            out.extend(payload.iter().map(|byte| char::from(*byte)));
        } else if yaml::put(out, payload, false).is_err() {
            hex::put(out, payload, self.position + HEADER_LEN);
        }
        let spaces = out.len() - out[start..].trim_end_matches(' ').len() - start;
        out.truncate(out.len() - spaces);
        if !out.ends_with('\n') {
            out.push('\n');
        }
        if out.ends_with(SPARE_END) {
            cut_spare(out, start);
        }
        out.push('\n');
    }
}

fn next_number(sequence: Option<u64>) -> u64 {
    sequence.map_or(0, |sequence| sequence + 1)
}

/// Cuts the trailing zeros of an array of positions, and the five bytes before them, as Java does.
fn cut_spare(out: &mut String, start: usize) {
    let text = &out[start - 1..];
    if !text.contains("\nindex2index:") && !text.contains("\nindex:") {
        return;
    }
    let mut rest = &out[..out.len() - SPARE_END.len() + SPARE.len()];
    while let Some(shorter) = rest.strip_suffix(SPARE) {
        rest = shorter;
    }
    let kept = rest.len().saturating_sub(5).max(start);
    out.truncate(kept);
    out.push_str(" # truncated trailing zeros\n]");
}
