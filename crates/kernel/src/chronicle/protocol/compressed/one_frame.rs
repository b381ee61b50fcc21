//! A compressed file of one frame, as the `zstd` command makes: it is decompressed whole before any
//! part is read.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zstd::stream::read;

use super::{
    CHUNK, DECOMPRESS, Pause, SUMMARY_LEN, TAIL_MAX, damaged, ends_early, read_up_to, write_sparse,
};
use crate::chronicle::format::document::{self, Header};
use crate::chronicle::format::store;
use crate::memory::window::Window;
use crate::os::files;
use crate::{Error, Result};

/// A compressed file that is being read.
pub struct OneFrame {
    path: PathBuf,
    length: u64,
    at: u64,
    decoder: read::Decoder<'static, BufReader<File>>,
}

impl OneFrame {
    /// The frame of a file, after its summary if it has one. The content's length must be known.
    pub fn new(path: &Path, file: File, has_summary: bool, length: Option<u64>) -> Result<Self> {
        let length = length.ok_or_else(|| damaged(path, 0, "no length of its content"))?;
        let start = if has_summary { SUMMARY_LEN as u64 } else { 0 };
        let failed = |e| Error::io(DECOMPRESS, path, e);
        (&file).seek(SeekFrom::Start(start)).map_err(failed)?;
        let decoder = read::Decoder::new(file).map_err(failed)?.single_frame();
        Ok(Self { path: path.to_path_buf(), length, at: 0, decoder })
    }

    /// Fills `chunk` as far as there is content; the number of bytes.
    pub fn read(&mut self, chunk: &mut [u8]) -> Result<usize> {
        let found = read_up_to(&mut self.decoder, chunk).map_err(|error| {
            if error.raw_os_error().is_some() {
                return Error::io(DECOMPRESS, &self.path, error);
            }
            damaged(&self.path, self.at, error.to_string())
        })?;
        self.at += found as u64;
        if self.at > self.length || (found < chunk.len() && self.at < self.length) {
            let found = format!("content of {} bytes", self.at);
            return Err(damaged(&self.path, self.at, found));
        }
        if found < chunk.len() {
            self.check_nothing_follows()?;
        }
        Ok(found)
    }

    fn check_nothing_follows(&mut self) -> Result<()> {
        let rest = self.decoder.get_mut().read(&mut [0]);
        match rest.map_err(|e| Error::io(DECOMPRESS, &self.path, e))? {
            0 => Ok(()),
            _ => Err(damaged(&self.path, self.at, "more after the frame")),
        }
    }

    /// The content, mapped read-only, in an unnamed file, which must be empty; a guide checks it
    /// during decompression.
    pub fn window(mut self, file: File, pause: Pause<'_>) -> Result<Window> {
        let path = self.path.clone();
        let failed = |e| Error::io(DECOMPRESS, &path, e);
        let (mut guide, mut chunk) = (Guide::default(), vec![0; CHUNK]);
        loop {
            pause()?; // on error the unnamed file is dropped
            let at = self.at;
            let found = self.read(&mut chunk)?;
            guide.follow(&path, &chunk[..found], at, self.length)?;
            write_sparse(&file, &chunk[..found], at).map_err(failed)?;
            if found < chunk.len() {
                break;
            }
        }
        files::set_len(&file, self.length).map_err(failed)?;
        Window::new(&path, file, false)
    }
}

/// Follows the documents during decompression, so that content that is not a roll file, or
/// continues long after its end, is refused before it takes space and time.
#[derive(Default)]
struct Guide {
    /// The next header; None after the last one, or where the documents are damaged.
    next: Option<u64>,
    is_aligned: bool,
}

impl Guide {
    fn follow(&mut self, path: &Path, chunk: &[u8], at: u64, length: u64) -> Result<()> {
        if at == 0 {
            self.is_aligned = Self::head(chunk).ok_or_else(|| {
                damaged(path, 0, "content that does not begin as a roll file does")
            })?;
            self.next = self.is_aligned.then_some(0);
        }
        while let Some(position) = self.next {
            let Some(word) = word_in(chunk, at, position) else { break };
            self.next = match document::parse(word) {
                Header::Data(size) | Header::Meta(size) => {
                    Some(document::next(position, size, self.is_aligned))
                }
                Header::EndOfData if length - position > TAIL_MAX => {
                    return Err(ends_early(path, position, length));
                }
                _ => None,
            };
        }
        Ok(())
    }

    /// Whether documents are aligned; None if there is no header of a roll file.
    fn head(chunk: &[u8]) -> Option<bool> {
        let (word, payload) = chunk.split_first_chunk()?;
        let Header::Meta(length) = document::parse(u32::from_le_bytes(*word)) else { return None };
        let length = usize::try_from(length).ok()?;
        store::parse(payload.get(..length)?).map(|layout| layout.aligned)
    }
}

/// A header word, if it lies in a chunk.
fn word_in(chunk: &[u8], at: u64, position: u64) -> Option<u32> {
    let start = usize::try_from(position.checked_sub(at)?).ok()?;
    let word = chunk.get(start..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}
