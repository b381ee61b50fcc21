//! Compressed roll files: `NAME.cq4.zst` in place of `NAME.cq4` (`docs/format.md` §1.7).
//!
//! The file holds a summary, in a frame that zstd skips; the bytes of a finished roll file, in
//! frames that are decompressed independently; and a table of the frames. Older files have one
//! frame and no table. If the roll file exists as well, the compressed one is ignored. A reader
//! decompresses what it reads into an unnamed file and maps that read-only, so nothing is ever
//! appended.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zstd::zstd_safe;

use super::roll_file::{self, RollFile, Slot, View};
use super::{create, locate};
use crate::chronicle::format::roll_cycle::COMPRESSED;
use crate::chronicle::format::seek_table::SeekTable;
use crate::memory::window::Window;
use crate::os::files::{self, Access};
use crate::{Error, Result};

mod frames;
mod making;
mod one_frame;

use frames::Frames;
pub use making::{Comparison, Compression};
use one_frame::OneFrame;

/// The most content that is decompressed, in bytes.
const CONTENT_MAX: u64 = 1 << 40;
/// The greatest accepted compression ratio of a frame.
const RATIO_MAX: u64 = 1 << 15;
/// The least size of a message: its header.
const LEAST_MESSAGE: u64 = 4;
/// How far content may continue after the end-of-file marker: the rest of the last block.
const TAIL_MAX: u64 = 1 << 32;
/// Bytes of a frame's header that suffice to read the length of its content.
const FRAME_HEADER: usize = 18;
/// The start of a summary: the magic of a skippable frame, and its length.
const SUMMARY_START: [u8; 8] = [0x51, 0x2A, 0x4D, 0x18, 16, 0, 0, 0];
/// Bytes of a summary.
const SUMMARY_LEN: usize = 24;
/// Bytes read or written at a time.
const CHUNK: usize = 1 << 20;

/// Called between the parts of a long decompression; an error ends it.
pub type Pause<'a> = &'a mut dyn FnMut() -> Result<()>;

/// The name of the compressed file of a roll file.
#[must_use]
pub fn path_for(roll_file: &Path) -> PathBuf {
    let mut name = roll_file.as_os_str().to_owned();
    name.push(COMPRESSED);
    name.into()
}

/// Whether a path is that of a compressed file.
#[must_use]
pub fn is_compressed(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(COMPRESSED.as_bytes())
}

/// Opens a roll file or a compressed one, by its name, to read; None when it is missing or not
/// ready.
pub fn open_either(path: &Path, cycle: i32, pause: Pause<'_>) -> Result<Option<RollFile>> {
    if is_compressed(path) {
        open(path, cycle, pause)
    } else {
        create::open_existing(path, cycle, false)
    }
}

/// Opens the roll file at a path, or else its compressed file; None if neither exists, or the roll
/// file is not ready.
pub fn open_cycle(
    path: &Path,
    cycle: i32,
    write: bool,
    pause: Pause<'_>,
) -> Result<Option<RollFile>> {
    match create::open_existing(path, cycle, write)? {
        None => open(&path_for(path), cycle, pause),
        file => Ok(file),
    }
}

/// Opens a compressed file; None if it is missing.
pub fn open(path: &Path, cycle: i32, pause: Pause<'_>) -> Result<Option<RollFile>> {
    let Some(packed) = Packed::open(path)? else { return Ok(None) };
    let summary = packed.summary;
    let window = packed.window(pause)?;
    let layout = roll_file::read_layout(&window)?;
    let layout = layout.ok_or_else(|| damaged(path, 0, "no finished roll file"))?;
    let file = Arc::new(RollFile::new(cycle, window, layout));
    if let Some(summary) = summary {
        summary.check(&file)?;
    }
    Ok(Arc::into_inner(file))
}

/// Like [`open`], but decompresses, and so checks, all of the content.
pub fn open_whole(path: &Path, cycle: i32, pause: Pause<'_>) -> Result<Option<RollFile>> {
    let Some(file) = open(path, cycle, pause)? else { return Ok(None) };
    frames::fill_whole(&file.window, pause)?;
    Ok(Some(file))
}

/// The summary in a compressed file; None if the file is missing or was made by the `zstd` command.
pub fn summary(path: &Path) -> Result<Option<Summary>> {
    Ok(Packed::open(path)?.and_then(|packed| packed.summary))
}

/// A compressed file, and its summary and frames.
struct Packed {
    path: PathBuf,
    file: File,
    summary: Option<Summary>,
    frames: Packing,
}

/// How the content is packed.
enum Packing {
    /// In one frame, whose header may state the length of the content.
    One(Option<u64>),
    /// In frames that a table lists.
    Many(SeekTable),
}

impl Packing {
    /// The length of the content, if the file states it.
    fn content(&self) -> Option<u64> {
        match self {
            Self::One(length) => *length,
            Self::Many(table) => Some(table.content()),
        }
    }
}

impl Packed {
    /// Opens a file, and checks the lengths and counts that it states; None if it is missing.
    fn open(path: &Path) -> Result<Option<Self>> {
        let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
            return Ok(None);
        };
        let failed = |e| Error::io(DECOMPRESS, path, e);
        let len = file.metadata().map_err(failed)?.len();
        let mut header = [0; SUMMARY_LEN + FRAME_HEADER];
        let found = read_up_to(&mut &file, &mut header).map_err(failed)?;
        let summary = Summary::parse(&header[..found]);
        let start = summary.map_or(0, |_| SUMMARY_LEN).min(found);
        let frames = frames::seek_table(&file, path, len)?.map_or_else(
            || {
                Packing::One(
                    zstd_safe::get_frame_content_size(&header[start..found]).ok().flatten(),
                )
            },
            Packing::Many,
        );
        let length = frames.content();
        if let Some(length) = length
            && (length > CONTENT_MAX || length / RATIO_MAX > len)
        {
            let found = format!("content of {length} bytes in a file of {len}");
            return Err(damaged(path, 0, found));
        }
        if let Some(summary) = summary {
            summary.check_length(path, length)?;
        }
        Ok(Some(Self { path: path.to_path_buf(), file, summary, frames }))
    }

    /// The content, mapped read-only, in an unnamed file.
    fn window(self, pause: Pause<'_>) -> Result<Window> {
        let dense = self.summary.map_or(0, |summary| summary.position);
        let Self { path, file, summary, frames } = self;
        match frames {
            Packing::Many(table) => {
                let target = match place_for(&path, dense) {
                    // The part that is read may still fit there, where appenders need no space.
                    Err(error) if error.is_of_the_system() => temporary(&path)?,
                    made => made?,
                };
                Frames::new(&path, file, table).window(target)
            }
            Packing::One(length) => {
                let again = file.try_clone().map_err(|e| Error::io(DECOMPRESS, &path, e))?;
                let frame = |file| OneFrame::new(&path, file, summary.is_some(), length);
                match frame(file)?.window(place_for(&path, dense)?, pause) {
                    Err(error) if error.is_of_the_system() => {
                        frame(again)?.window(temporary(&path)?, pause)
                    }
                    made => made,
                }
            }
        }
    }
}

fn temporary(path: &Path) -> Result<File> {
    files::without_name(&std::env::temp_dir()).map_err(|e| Error::io(DECOMPRESS, path, e))
}

/// An unnamed file with room for `need` bytes, in the directory of `path` or in the one for
/// temporary files.
fn place_for(path: &Path, need: u64) -> Result<File> {
    let made_in = |dir: &Path| {
        let file = files::without_name(dir).map_err(|e| Error::io(DECOMPRESS, path, e))?;
        check_space(path, &file, need).map(|()| file)
    };
    match made_in(path.parent().unwrap_or(Path::new("."))) {
        Err(error) if error.is_of_the_system() => made_in(&std::env::temp_dir()),
        made => made,
    }
}

/// Facts about a cycle that are known without decompressing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many messages it has.
    pub messages: u64,
    /// The position of its end-of-file marker.
    pub position: u64,
}

impl Summary {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (messages, rest) = bytes.strip_prefix(&SUMMARY_START)?.split_first_chunk()?;
        let (position, _) = rest.split_first_chunk()?;
        let (messages, position) = (u64::from_le_bytes(*messages), u64::from_le_bytes(*position));
        Some(Self { messages, position })
    }

    fn bytes(self) -> Vec<u8> {
        [SUMMARY_START, self.messages.to_le_bytes(), self.position.to_le_bytes()].concat()
    }

    /// The summary of a roll file, and the slot at its end.
    fn of(file: &Arc<RollFile>) -> Result<(Self, Slot)> {
        let end = locate::end(&mut View::new(Arc::clone(file)))?;
        Ok((Self { messages: end.next_sequence(), position: end.position }, end.slot))
    }

    /// Checks that this summary is possible for content of this length.
    fn check_length(self, path: &Path, length: Option<u64>) -> Result<()> {
        let Self { messages, position } = self;
        let is_past = length.is_none_or(|length| position > length);
        if is_past || messages > position / LEAST_MESSAGE {
            let found = format!("{messages} messages up to {position:#x} in {length:?} bytes");
            return Err(damaged(path, 0, found));
        }
        match length {
            Some(length) if length - position > TAIL_MAX => Err(ends_early(path, position, length)),
            _ => Ok(()),
        }
    }

    /// Checks that a file holds the same messages.
    fn check(self, file: &Arc<RollFile>) -> Result<()> {
        let (found, _) = Self::of(file)?;
        if found == self {
            return Ok(());
        }
        let (says, messages) = (self.messages, found.messages);
        let found = format!("{messages} messages, where its summary says {says}");
        Err(damaged(file.path(), self.position, found))
    }
}

const DECOMPRESS: &str = "cannot decompress";

/// An error if a file system has less free space than the messages take, since appends need space
/// as well.
fn check_space(path: &Path, file: &File, need: u64) -> Result<()> {
    let left = files::left(file).map_err(|e| Error::io(DECOMPRESS, path, e))?;
    if need <= left.free {
        return Ok(());
    }
    let full = io::Error::from_raw_os_error(libc::ENOSPC);
    Err(Error::io(DECOMPRESS, path, full))
}

/// Reads until a buffer is full, or nothing is left; the number of bytes.
fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes the pages of a chunk that are not all zeros.
fn write_sparse(file: &File, chunk: &[u8], at: u64) -> io::Result<()> {
    let is_empty = |page: &[u8]| page.iter().all(|byte| *byte == 0);
    let pages: Vec<_> = chunk.chunks(files::PAGE_LEN).collect();
    let mut done = 0;
    for run in pages.chunk_by(|one, next| is_empty(one) == is_empty(next)) {
        let end = chunk.len().min(done + run.len() * files::PAGE_LEN);
        if !is_empty(run[0]) {
            file.write_all_at(&chunk[done..end], at + done as u64)?;
        }
        done = end;
    }
    Ok(())
}

fn ends_early(path: &Path, position: u64, length: u64) -> Error {
    damaged(path, position, format!("an end at {position:#x} in content of {length} bytes"))
}

fn damaged(path: &Path, position: u64, found: impl Into<String>) -> Error {
    let what = "not a compressed roll file";
    Error::corrupt(what, path, position, found, "zstd frames of a finished roll file")
}
