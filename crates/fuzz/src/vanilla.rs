//! Any bytes as the files of a cycle of a Vanilla Chronicle.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quire_kernel::Result;
use quire_kernel::chronicle::read::missing::OnMissing;
use quire_kernel::chronicle::read::tailer::Opening;
use quire_kernel::os::detached::Detached;
use quire_kernel::vanilla::format::fields::FieldReader;
use quire_kernel::vanilla::protocol::detect::Asked;
use quire_kernel::vanilla::{
    Direction, Record, VanillaAppender, VanillaOptions, VanillaQueue, VanillaTailer,
};

use crate::bounded;
use crate::sample::Scratch;

const INDEX: usize = 64;
const DATA: usize = 256;
const TID_BITS: u32 = 16;
const CYCLE: &str = "20240115";
const NAME: &str = "fuzz";
/// Bytes of a named tailer's position.
const POSITION: usize = 64;
const APPENDED: &[u8] = b"appended to the file as found";
/// The most messages that are read or skipped.
const MOST: usize = 512;
/// The most memory that opening and reading a few files may allocate.
const MEMORY: usize = 8 << 20;

/// The first byte says whether the layout is known or to be detected, and whether a position comes
/// first; the others are index and data files in turn.
pub fn vanilla(data: &[u8]) {
    let Some((form, rest)) = data.split_first() else { return };
    if rest.len() > 16 * (INDEX + DATA) {
        return;
    }
    let (is_known, is_named) = (form & 1 == 1, form & 2 == 2);
    let scratch = Scratch::new();
    let dir = laid_out(&scratch, is_named, rest);
    let rest = &[rest, &[0; INDEX + DATA]].concat()[..]; // as the last files are
    bounded(MEMORY, || {
        let _ = read(&dir, is_known, rest, None);
        if is_named {
            let _ = read(&dir, is_known, rest, Some(NAME));
        }
        let _ = read_back(&dir, is_known);
        append(&dir, is_known);
        let rebuilt =
            open(&dir, is_known, false).rebuild_index(&Detached::here()).unwrap_or_default();
        if is_known && !rebuilt.is_empty() && rebuilt.iter().all(|(_, it)| it.messages > 0) {
            let is_read = read(&dir, true, rest, None);
            assert!(is_read.is_ok(), "rebuilt, and not read: {:?}", is_read.err());
        }
        fields(rest);
    });
}

fn laid_out(scratch: &Scratch, is_named: bool, rest: &[u8]) -> PathBuf {
    let dir = scratch.with(&[]).join("queue");
    let cycle = dir.join(CYCLE);
    fs::create_dir_all(&cycle).unwrap();
    let (position, files) = rest.split_at(if is_named { rest.len().min(POSITION) } else { 0 });
    if is_named {
        fs::write(dir.join(format!(".tailer-{NAME}")), position).unwrap();
    }
    for (number, file) in files.chunks(INDEX + DATA).enumerate() {
        let mut file = file.to_vec();
        file.resize(INDEX + DATA, 0);
        fs::write(cycle.join(format!("index-{number}")), &file[..INDEX]).unwrap();
        fs::write(cycle.join(format!("data-1-{number}")), &file[INDEX..]).unwrap();
    }
    dir
}

fn open(dir: &Path, is_known: bool, read_only: bool) -> Arc<VanillaQueue> {
    let known = Asked {
        tid_bits: Some(TID_BITS),
        index_block: Some(INDEX as u64),
        data_block: Some(DATA as u64),
    };
    let layout = if is_known { known } else { Asked::default() };
    let roll_cycle = Some("DAYS".to_owned());
    let options = VanillaOptions { read_only, layout, roll_cycle, ..VanillaOptions::default() };
    Arc::new(VanillaQueue::open(dir, options).unwrap())
}

fn tailer(queue: &Arc<VanillaQueue>, name: Option<&str>) -> Result<Arc<VanillaTailer>> {
    let opening = Opening { name, shared: false, on_missing: OnMissing::Skip };
    VanillaTailer::open(Arc::clone(queue), opening, &Detached::here())
}

/// Reads all messages; unreadable ones are skipped, and the first error is returned.
fn read(dir: &Path, is_known: bool, rest: &[u8], name: Option<&str>) -> Result<()> {
    let queue = open(dir, is_known, name.is_none());
    let tailer = tailer(&queue, name)?;
    let mut found = Ok(());
    for _ in 0..MOST {
        match tailer.read(&Detached::here()) {
            Ok(Some(message)) => {
                let bytes = message.copied()?;
                let is_appended = bytes == APPENDED;
                let is_there = || rest.windows(bytes.len()).any(|it| it == bytes);
                assert!(bytes.is_empty() || is_appended || is_there(), "not in the files");
            }
            Ok(None) => break,
            Err(error) => {
                found = found.and(Err(error));
                tailer.move_to_index(&Detached::here(), tailer.index(&Detached::here())? + 1)?;
            }
        }
    }
    let _ = (queue.first_index(), queue.last_index(), queue.entry_count());
    tailer.to_end(&Detached::here())?;
    found
}

fn read_back(dir: &Path, is_known: bool) -> Result<()> {
    let tailer = tailer(&open(dir, is_known, true), None)?;
    tailer.to_end(&Detached::here())?;
    tailer.set_direction(&Detached::here(), Direction::Backward)?;
    for _ in 0..MOST {
        let Some(message) = tailer.read(&Detached::here())? else { break };
        assert_eq!(tailer.last_read_index(&Detached::here())?, Some(message.index));
    }
    tailer.to_start(&Detached::here())
}

/// Checks that appended messages are read at the returned indexes. Without a known layout, hostile
/// entries may cause another one to be detected.
fn append(dir: &Path, is_known: bool) {
    let queue = open(dir, is_known, false);
    let appender = VanillaAppender::new(Arc::clone(&queue), None).unwrap();
    let record = Record { parts: [APPENDED, &[]], ..Record::default() };
    for now_ms in [1_705_314_600_000, 1_705_401_000_000] {
        let Ok(index) = appender.append(&Detached::here(), Some(now_ms), record) else { continue };
        if is_known {
            let tailer = tailer(&queue, None).unwrap();
            assert!(
                tailer.move_to_index(&Detached::here(), index).unwrap(),
                "appended and not there: {index:#x}"
            );
            let message = tailer.read(&Detached::here()).unwrap().unwrap();
            assert_eq!((message.index, &*message.copied().unwrap()), (index, APPENDED));
        }
    }
}

/// The bytes as fields, each kind from each position.
fn fields(payload: &[u8]) {
    for position in 0..payload.len().min(64) {
        let at = || FieldReader::at(payload, position);
        let _ = (at().stop_bit(), at().utf(), at().short_utf(), at().enum_name());
        let _ = (at().compact_int(), at().compact_long(), at().compact_double());
        let _ = (at().parse_int(), at().parse_float(), at().object());
    }
}
