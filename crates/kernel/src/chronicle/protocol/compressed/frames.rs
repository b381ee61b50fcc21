//! The content of a compressed file with a seek table: each frame is decompressed once, when a part
//! of it is first read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use zstd::bulk::Decompressor;

use super::{CHUNK, DECOMPRESS, Pause, RATIO_MAX, damaged, write_sparse};
use crate::chronicle::format::seek_table::{FOOT, Foot, SeekTable};
use crate::memory::window::{Source, Window};
use crate::os::files;
use crate::{Error, Result};

/// Frames that are decompressed at the same time.
const LANES: usize = 16;

/// The seek table at the end of a file of `len` bytes; None if there is none.
pub fn seek_table(file: &File, path: &Path, len: u64) -> Result<Option<SeekTable>> {
    let failed = |e| Error::io(DECOMPRESS, path, e);
    let mut foot = [0; FOOT];
    let Some(foot_at) = len.checked_sub(FOOT as u64) else { return Ok(None) };
    file.read_exact_at(&mut foot, foot_at).map_err(failed)?;
    let Some(foot) = Foot::parse(&foot) else { return Ok(None) };
    let wrong = |found: String| damaged(path, foot_at, found);
    let at = len.checked_sub(foot.table_len());
    let at = at.ok_or_else(|| wrong(format!("a seek table in a file of {len} bytes")))?;
    let mut bytes = vec![0; usize::try_from(foot.table_len()).unwrap_or_default()];
    file.read_exact_at(&mut bytes, at).map_err(failed)?;
    SeekTable::parse(&bytes, foot, at, RATIO_MAX).map(Some).map_err(wrong)
}

/// A compressed file, and which of its frames have been decompressed.
pub struct Frames {
    path: PathBuf,
    file: File,
    table: SeekTable,
    is_there: Vec<AtomicBool>,
    /// Each serialises the decompression of its frames: bytes that readers have borrowed must not
    /// be written again.
    lanes: [Mutex<()>; LANES],
}

impl Frames {
    /// The frames of a file with this table.
    pub fn new(path: &Path, file: File, table: SeekTable) -> Self {
        let is_there = (0..table.count()).map(|_| AtomicBool::new(false)).collect();
        Self { path: path.to_path_buf(), file, table, is_there, lanes: Default::default() }
    }

    /// How many frames there are.
    pub const fn count(&self) -> usize {
        self.table.count()
    }

    /// A window of the content, in an unnamed file, which must be empty.
    pub fn window(self, file: File) -> Result<Window> {
        let (path, length) = (self.path.clone(), self.table.content());
        files::set_len(&file, length).map_err(|e| Error::io(DECOMPRESS, &path, e))?;
        Window::filled_by(&path, file, Box::new(self))
    }

    /// The content of a frame.
    pub fn content(&self, number: usize) -> Result<Vec<u8>> {
        let (start, end) = self.table.frame(number);
        let [packed, length] = [end.at - start.at, end.content - start.content]
            .map(|length| usize::try_from(length).unwrap_or_default());
        if length == 0 {
            return Ok(Vec::new()); // it may be a skippable frame
        }
        let failed = |error| Error::io(DECOMPRESS, &self.path, error);
        let wrong = |found| damaged(&self.path, start.content, found);
        let mut bytes = vec![0; packed];
        self.file.read_exact_at(&mut bytes, start.at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => wrong(error.to_string()),
            _ => failed(error),
        })?;
        let mut decompressor = Decompressor::new().map_err(failed)?;
        let content = decompressor.decompress(&bytes, length);
        let content = content.map_err(|error| wrong(error.to_string()))?;
        match content.len() {
            found if found == length => Ok(content),
            found => Err(wrong(format!("{found} bytes in a frame of {length}"))),
        }
    }

    fn unpack(&self, number: usize, target: &File) -> Result<()> {
        let lane = self.lanes[number % LANES].lock();
        let _one_at_a_time = lane.unwrap_or_else(PoisonError::into_inner);
        if self.is_there[number].load(Ordering::Acquire) {
            return Ok(());
        }
        let content = self.content(number)?;
        let at = self.table.frame(number).0.content;
        write_sparse(target, &content, at).map_err(|e| Error::io(DECOMPRESS, &self.path, e))?;
        self.is_there[number].store(true, Ordering::Release);
        Ok(())
    }
}

impl Source for Frames {
    fn fill(&self, file: &File, start: u64, end: u64) -> Result<()> {
        for number in self.table.frames_of(start, end) {
            if !self.is_there[number].load(Ordering::Acquire) {
                self.unpack(number, file)?;
            }
        }
        Ok(())
    }
}

/// Decompresses all remaining frames.
pub fn fill_whole(window: &Window, pause: Pause<'_>) -> Result<()> {
    for at in (0..window.file_len()).step_by(CHUNK) {
        pause()?;
        window.fill(at, at + CHUNK as u64)?;
    }
    Ok(())
}
