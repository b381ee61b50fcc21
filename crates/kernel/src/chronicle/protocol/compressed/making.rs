//! Creating a compressed file, and comparing it with its roll file.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::frames::Frames;
use super::one_frame::OneFrame;
use super::{CHUNK, DECOMPRESS, Packed, Packing, Summary, create, read_up_to};
use crate::chronicle::format::seek_table;
use crate::chronicle::protocol::roll_file::Slot;
use crate::os::files::{self, Access};
use crate::{Error, Result};

/// The level of compression: zstd's default.
const LEVEL: i32 = 3;
/// The content of a frame. Longer frames save no space, and reading one message decompresses a
/// whole frame.
const FRAME: usize = 256 << 10;
/// How many frames one step of a long run handles.
const FRAMES_A_STEP: usize = 64;

/// Compresses a finished roll file into one that is empty, a step at a time.
pub struct Compression {
    source: (PathBuf, File),
    target: (PathBuf, File),
    compressor: Compressor<'static>,
    /// The lengths of the frames that were written, and of their content.
    frames: Vec<(u32, u32)>,
}

impl Compression {
    /// Compresses `source` into `target`; both exist.
    pub fn new(source: &Path, target: &Path) -> Result<Self> {
        let file = create::open_existing(source, 0, false)?;
        let file = file.ok_or_else(|| Error::gone(COMPRESS, source))?;
        match Summary::of(&file.into())? {
            (summary, Slot::EndOfData) => Self::with(summary, source, target),
            _ => Err(Error::Unsupported(format!(
                "compressing a roll file without end-of-file marker: file={}",
                source.display()
            ))),
        }
    }

    fn with(summary: Summary, source: &Path, target: &Path) -> Result<Self> {
        let from = open_named(source, false)?;
        let failed = |e| Error::io(COMPRESS, source, e);
        let mut compressor = Compressor::new(LEVEL).map_err(failed)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true)).map_err(failed)?;
        let into = open_named(target, true)?;
        let mut run = Self {
            source: (source.to_path_buf(), from),
            target: (target.to_path_buf(), into),
            compressor,
            frames: Vec::new(),
        };
        run.put(&summary.bytes(), 0)?;
        Ok(run)
    }

    /// Writes a frame; with a summary in place of one, there is no content.
    fn put(&mut self, frame: &[u8], content: usize) -> Result<()> {
        let (path, file) = &mut self.target;
        file.write_all(frame).map_err(|e| Error::io(COMPRESS, path, e))?;
        let lengths = [frame.len(), content].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
        self.frames.push(lengths.into());
        Ok(())
    }

    /// Takes one step; false once the target is complete and synced.
    pub fn step(&mut self) -> Result<bool> {
        let mut chunk = vec![0; FRAME];
        for _ in 0..FRAMES_A_STEP {
            let (path, file) = &mut self.source;
            let failed = |e| Error::io(COMPRESS, path, e);
            let found = read_up_to(file, &mut chunk).map_err(failed)?;
            if found > 0 {
                let frame = self.compressor.compress(&chunk[..found]).map_err(failed)?;
                self.put(&frame, found)?;
            }
            if found < chunk.len() {
                return self.finish().map(|()| false);
            }
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<()> {
        let (path, file) = &mut self.target;
        let table = seek_table::bytes_of(&self.frames);
        file.write_all(&table)
            .and_then(|()| files::sync(file))
            .map_err(|e| Error::io(COMPRESS, path, e))
    }
}

const COMPRESS: &str = "cannot compress";

/// Compares a compressed file with a roll file, a step at a time.
pub struct Comparison {
    source: (PathBuf, File),
    content: Content,
}

/// The content of a compressed file, from its start to its end.
enum Content {
    One(OneFrame),
    /// The frames, and which comes next.
    Many(Frames, usize),
}

impl Content {
    fn open(path: &Path) -> Result<Self> {
        let packed = Packed::open(path)?.ok_or_else(|| Error::gone(DECOMPRESS, path))?;
        let Packed { path, file, summary, frames } = packed;
        Ok(match frames {
            Packing::One(length) => {
                Self::One(OneFrame::new(&path, file, summary.is_some(), length)?)
            }
            Packing::Many(table) => Self::Many(Frames::new(&path, file, table), 0),
        })
    }

    /// The next piece; None at the end.
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        match self {
            Self::One(frame) => {
                let mut piece = vec![0; CHUNK];
                let found = frame.read(&mut piece)?;
                piece.truncate(found);
                Ok((found > 0).then_some(piece))
            }
            Self::Many(frames, next) if *next < frames.count() => {
                *next += 1;
                frames.content(*next - 1).map(Some)
            }
            Self::Many(..) => Ok(None),
        }
    }
}

impl Comparison {
    /// Compares `source` with `compressed`; both exist.
    pub fn new(source: &Path, compressed: &Path) -> Result<Self> {
        let file = open_named(source, false)?;
        let content = Content::open(compressed)?;
        Ok(Self { source: (source.to_path_buf(), file), content })
    }

    /// Takes one step; returns whether the content is the same once that is known.
    pub fn step(&mut self) -> Result<Option<bool>> {
        for _ in 0..FRAMES_A_STEP {
            let (path, file) = &mut self.source;
            let piece = self.content.next()?;
            let mut same = vec![0; piece.as_ref().map_or(1, Vec::len)];
            let found = read_up_to(file, &mut same).map_err(|e| Error::io(COMPRESS, path, e))?;
            match piece {
                Some(piece) if same[..found] != piece => return Ok(Some(false)),
                Some(_) => {}
                None => return Ok(Some(found == 0)),
            }
        }
        Ok(None)
    }
}

fn open_named(path: &Path, write: bool) -> Result<File> {
    files::open(path, Access { write, create_mode: None })?
        .ok_or_else(|| Error::gone(COMPRESS, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(dir: &Path, content: &[u8]) -> PathBuf {
        let (source, target) = (dir.join("a.cq4"), dir.join("a.cq4.zst"));
        std::fs::write(&source, content).expect("a file");
        std::fs::write(&target, []).expect("a file");
        let summary = Summary { messages: 0, position: 0 };
        let mut run = Compression::with(summary, &source, &target).expect("a start");
        while run.step().expect("a step") {}
        target
    }

    fn decompressed(path: &Path) -> Result<Vec<u8>> {
        let packed = Packed::open(path)?.expect("a file");
        let window = packed.window(&mut || Ok(()))?;
        let mut found = vec![0; usize::try_from(window.file_len()).expect("a length")];
        assert_eq!(window.read_at(&mut found, 0)?, found.len());
        Ok(found)
    }

    #[test]
    fn content_of_any_length_comes_back() {
        let dir = tempfile::tempdir().expect("a directory");
        for length in [0, 1, FRAME - 1, FRAME, FRAME + 1, FRAMES_A_STEP * FRAME + 5000] {
            let mut content = vec![0; length];
            content.iter_mut().step_by(9999).zip((1..=251).cycle()).for_each(|(it, n)| *it = n);
            let path = compressed(dir.path(), &content);
            let mut run = Comparison::new(&dir.path().join("a.cq4"), &path).expect("a start");
            let is_same = std::iter::repeat_with(|| run.step().expect("a step")).flatten().next();
            assert_eq!(is_same, Some(true), "{length}");
            assert!(decompressed(&path).expect("content") == content, "{length}");
        }
    }

    #[test]
    fn every_damage_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let content: Vec<u8> = (0..100_000_u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
        let path = compressed(dir.path(), &content);
        let whole = std::fs::read(&path).expect("bytes");
        let mut wrong = vec![[whole.as_slice(), &[0]].concat(), whole.repeat(2), vec![]];
        wrong.extend([1, 4, 8, whole.len() / 2, whole.len() - 1].map(|end| whole[..end].to_vec()));
        for at in (0..whole.len()).step_by(whole.len() / 50) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            wrong.push(bytes);
        }
        for bytes in wrong {
            std::fs::write(&path, &bytes).expect("a file");
            let found = decompressed(&path);
            assert!(
                matches!(found, Err(Error::Corrupt { .. })) || found.is_ok_and(|it| it == content)
            );
        }
    }
}
