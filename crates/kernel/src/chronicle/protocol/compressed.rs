//! Compressed roll files: `NAME.cq4.zst` in place of `NAME.cq4` (`docs/format.md` §1.7).
//!
//! A summary, in a frame that zstd skips, and one zstd frame, which declares the length of its content
//! and has a checksum: the bytes of a finished roll file. Where the roll file is there as well, it alone counts. A reader decompresses
//! into a file without a name and maps that read-only, so nothing is ever appended.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zstd::stream::{raw, read, zio};
use zstd::zstd_safe;

use super::roll_file::{self, RollFile, Slot, View};
use super::{create, locate};
use crate::chronicle::format::document::{self, Header};
use crate::chronicle::format::roll_cycle::COMPRESSED;
use crate::chronicle::format::store;
use crate::memory::window::Window;
use crate::os::files::{self, Access};
use crate::{Error, Result};

/// The level of compression: zstd's default.
const LEVEL: i32 = 3;
/// The most content that is decompressed.
const CONTENT_MAX: u64 = 1 << 40;
/// No frame holds more bytes of content for each of its own.
const RATIO_MAX: u64 = 1 << 15;
/// No message takes fewer bytes: those of its header.
const LEAST_MESSAGE: u64 = 4;
/// How far content may go on after the end-of-file marker: the rest of the last block.
const TAIL_MAX: u64 = 1 << 32;
/// Bytes of a frame's header that say the length of its content.
const FRAME_HEADER: usize = 18;
/// How a summary starts: a frame to skip, and the length of what is in it.
const SUMMARY_START: [u8; 8] = [0x51, 0x2A, 0x4D, 0x18, 16, 0, 0, 0];
/// Bytes of a summary.
const SUMMARY_LEN: usize = 24;
/// Bytes that are read or written at once.
const CHUNK: usize = 1 << 20;
/// How much a step of a long run does, in chunks.
const CHUNKS_A_STEP: usize = 16;

/// What is done between the parts of a long decompression: an error ends it.
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

/// Opens the roll file at a path, or else its compressed file; None when neither is there, or the
/// roll file is not ready.
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
    let Some(frame) = Frame::open(path)? else { return Ok(None) };
    let summary = frame.summary;
    let guide = || Some(Guide::default());
    let window = match frame.decompress_in(path.parent().unwrap_or(Path::new(".")), guide(), pause)
    {
        Err(error) if error.is_of_the_system() => {
            let Some(frame) = Frame::open(path)? else { return Ok(None) };
            frame.decompress_in(&std::env::temp_dir(), guide(), pause)?
        }
        made => made?,
    };
    let layout = roll_file::read_layout(&window)?;
    let layout = layout.ok_or_else(|| damaged(path, 0, "no finished roll file"))?;
    let file = Arc::new(RollFile::new(cycle, window, layout));
    if let Some(summary) = summary {
        summary.check(&file)?;
    }
    Ok(Arc::into_inner(file))
}

/// What a compressed file says of its content; None where it is missing, or zstd alone made it.
pub fn summary(path: &Path) -> Result<Option<Summary>> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(None);
    };
    Start::read(&file, path).map(|start| start.summary)
}

/// What precedes the content of a compressed file.
struct Start {
    summary: Option<Summary>,
    /// How long the content is; None where the frame does not say it.
    length: Option<u64>,
}

impl Start {
    /// Reads it, and checks the lengths and counts that it states.
    fn read(file: &File, path: &Path) -> Result<Self> {
        let failed = |e| Error::io(DECOMPRESS, path, e);
        let compressed = file.metadata().map_err(failed)?.len();
        let mut header = [0; SUMMARY_LEN + FRAME_HEADER];
        let found = read_up_to(&mut &*file, &mut header).map_err(failed)?;
        let summary = Summary::parse(&header[..found]);
        let frame = &header[summary.map_or(0, |_| SUMMARY_LEN).min(found)..found];
        let length = zstd_safe::get_frame_content_size(frame).ok().flatten();
        if let Some(length) = length
            && (length > CONTENT_MAX || length / RATIO_MAX > compressed)
        {
            let found = format!("content of {length} bytes in a frame of {compressed}");
            return Err(damaged(path, 0, found));
        }
        if let Some(Summary { messages, position }) = summary
            && (length.is_none_or(|length| position > length)
                || messages > position / LEAST_MESSAGE)
        {
            let found = format!("{messages} messages up to {position:#x} in {length:?} bytes");
            return Err(damaged(path, 0, found));
        }
        Ok(Self { summary, length })
    }
}

/// What can be known of a cycle before it is decompressed.
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

    /// That of a roll file, and what lies at its end.
    fn of(file: &Arc<RollFile>) -> Result<(Self, Slot)> {
        let end = locate::end(&mut View::new(Arc::clone(file)))?;
        Ok((Self { messages: end.next_sequence(), position: end.position }, end.slot))
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

/// A compressed file that is being read.
struct Frame {
    path: PathBuf,
    summary: Option<Summary>,
    length: u64,
    at: u64,
    decoder: read::Decoder<'static, BufReader<File>>,
}

impl Frame {
    fn open(path: &Path) -> Result<Option<Self>> {
        let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
            return Ok(None);
        };
        let Start { summary, length } = Start::read(&file, path)?;
        let length = length.ok_or_else(|| damaged(path, 0, "no length of its content"))?;
        let start = summary.map_or(0, |_| SUMMARY_LEN);
        let failed = |e| Error::io(DECOMPRESS, path, e);
        (&file).seek(SeekFrom::Start(start as u64)).map_err(failed)?;
        let decoder = read::Decoder::new(file).map_err(failed)?.single_frame();
        Ok(Some(Self { path: path.to_path_buf(), summary, length, at: 0, decoder }))
    }

    /// Fills `chunk` as far as there is content; the number of bytes.
    fn read(&mut self, chunk: &mut [u8]) -> Result<usize> {
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

    /// The content, mapped read-only, in a file without a name; a guide looks at it as it comes.
    fn decompress_in(
        mut self,
        dir: &Path,
        mut guide: Option<Guide>,
        pause: Pause<'_>,
    ) -> Result<Window> {
        let path = self.path.clone();
        let failed = |e| Error::io(DECOMPRESS, &path, e);
        let file = files::without_name(dir).map_err(failed)?;
        let mut chunk = vec![0; CHUNK];
        let dense = self.summary.map_or(0, |summary| summary.position);
        check_space(&path, &file, dense)?;
        loop {
            pause()?; // the file without a name ends with an error
            let at = self.at;
            let found = self.read(&mut chunk)?;
            if let Some(guide) = &mut guide {
                guide.follow(&path, &chunk[..found], at, self.length)?;
            }
            write_sparse(&file, &chunk[..found], at).map_err(failed)?;
            if found < chunk.len() {
                break;
            }
        }
        files::set_len(&file, self.length).map_err(failed)?;
        Window::new(&path, file, false)
    }
}

/// Steps over the documents of content as it comes, so that what is no roll file, or goes on long
/// after its end, is refused before it takes space and time.
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
                    let found = format!("an end at {position:#x} in content of {length} bytes");
                    return Err(damaged(path, position, found));
                }
                _ => None,
            };
        }
        Ok(())
    }

    /// Whether documents are aligned; None where there is no header of a roll file.
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

/// An error where a file system has less free space than messages take: others need it as well.
fn check_space(path: &Path, file: &File, need: u64) -> Result<()> {
    let left = files::left(file).map_err(|e| Error::io(DECOMPRESS, path, e))?;
    if need <= left.free {
        return Ok(());
    }
    let full = io::Error::from_raw_os_error(libc::ENOSPC);
    Err(Error::io(DECOMPRESS, path, full))
}

/// Compresses a finished roll file into one that is empty, a step at a time.
pub struct Compression {
    source: (PathBuf, File),
    target: (PathBuf, zio::Writer<File, raw::Encoder<'static>>),
    at: u64,
}

impl Compression {
    /// Of these files, which both exist.
    pub fn new(source: &Path, target: &Path) -> Result<Self> {
        let file = create::open_existing(source, 0, false)?;
        let file = file.ok_or_else(|| Error::gone(COMPRESS, source))?;
        match Summary::of(&Arc::new(file))? {
            (summary, Slot::EndOfData) => Self::with(summary, source, target),
            _ => Err(Error::Unsupported(format!(
                "compressing a roll file without end-of-file marker: file={}",
                source.display()
            ))),
        }
    }

    fn with(summary: Summary, source: &Path, target: &Path) -> Result<Self> {
        let from = open_named(source, false)?;
        let length = from.metadata().map_err(|e| Error::io(COMPRESS, source, e))?.len();
        let mut encoder = raw::Encoder::new(LEVEL).map_err(|e| Error::io(COMPRESS, source, e))?;
        let options = [raw::CParameter::ChecksumFlag(true), raw::CParameter::ContentSizeFlag(true)];
        for option in options {
            encoder.set_parameter(option).map_err(|e| Error::io(COMPRESS, source, e))?;
        }
        encoder.set_pledged_src_size(Some(length)).map_err(|e| Error::io(COMPRESS, source, e))?;
        let mut into = open_named(target, true)?;
        into.write_all(&summary.bytes()).map_err(|e| Error::io(COMPRESS, target, e))?;
        let writer = zio::Writer::new(into, encoder);
        let (source, target) = ((source.to_path_buf(), from), (target.to_path_buf(), writer));
        Ok(Self { source, target, at: 0 })
    }

    /// Goes on for a while; false once the target is complete and synced.
    pub fn step(&mut self) -> Result<bool> {
        let mut chunk = vec![0; CHUNK];
        for _ in 0..CHUNKS_A_STEP {
            let (path, file) = &mut self.source;
            let found = read_up_to(file, &mut chunk).map_err(|e| Error::io(COMPRESS, path, e))?;
            self.at += found as u64;
            let (path, writer) = &mut self.target;
            let failed = |e| Error::io(COMPRESS, path, e);
            writer.write_all(&chunk[..found]).map_err(failed)?;
            if found < chunk.len() {
                writer.finish().map_err(failed)?;
                files::sync(writer.writer()).map_err(failed)?;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

const COMPRESS: &str = "cannot compress";

/// Compares a compressed file with a roll file, a step at a time.
pub struct Comparison {
    source: (PathBuf, File),
    frame: Frame,
}

impl Comparison {
    /// Of these files, which both exist.
    pub fn new(source: &Path, compressed: &Path) -> Result<Self> {
        let file = open_named(source, false)?;
        let frame = Frame::open(compressed)?;
        let frame = frame.ok_or_else(|| Error::gone(DECOMPRESS, compressed))?;
        Ok(Self { source: (source.to_path_buf(), file), frame })
    }

    /// Goes on for a while; says whether the content is the same once that is known.
    pub fn step(&mut self) -> Result<Option<bool>> {
        let (mut chunk, mut other) = (vec![0; CHUNK], vec![0; CHUNK]);
        for _ in 0..CHUNKS_A_STEP {
            let (path, file) = &mut self.source;
            let found = read_up_to(file, &mut chunk).map_err(|e| Error::io(COMPRESS, path, e))?;
            let there = self.frame.read(&mut other)?;
            if chunk[..found] != other[..there] {
                return Ok(Some(false));
            }
            if found < chunk.len() {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }
}

fn open_named(path: &Path, write: bool) -> Result<File> {
    files::open(path, Access { write, create_mode: None })?
        .ok_or_else(|| Error::gone(COMPRESS, path))
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
    let mut position = at;
    for page in chunk.chunks(files::PAGE_LEN) {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, position)?;
        }
        position += page.len() as u64;
    }
    Ok(())
}

fn damaged(path: &Path, position: u64, found: impl Into<String>) -> Error {
    let what = "not a compressed roll file";
    Error::corrupt(what, path, position, found, "one zstd frame of a finished roll file")
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
        let frame = Frame::open(path)?.expect("a file");
        assert_eq!(frame.summary, summary(path)?);
        let window =
            frame.decompress_in(path.parent().expect("a directory"), None, &mut || Ok(()))?;
        let mut found = vec![0; usize::try_from(window.file_len()).expect("a length")];
        assert_eq!(window.read_at(&mut found, 0)?, found.len());
        Ok(found)
    }

    #[test]
    fn content_of_any_length_comes_back() {
        let dir = tempfile::tempdir().expect("a directory");
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, CHUNKS_A_STEP * CHUNK + 5000] {
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
