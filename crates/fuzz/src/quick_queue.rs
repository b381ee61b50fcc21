//! Any bytes as the pages and profiles of a Quick-Queue.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quire_kernel::Result;
use quire_kernel::os::detached::Detached;
use quire_kernel::quick_queue::append::Appender;
use quire_kernel::quick_queue::format::decimal::Decimal;
use quire_kernel::quick_queue::format::unpack::Fields;
use quire_kernel::quick_queue::queue::{Options, QuickQueue};
use quire_kernel::quick_queue::read::Tailer;

use crate::bounded;
use crate::sample::Scratch;

const PAGE: usize = 256;
const PROFILE: usize = 32;
const PRODUCER: &str = "AA0";
const APPENDED: &[u8] = b"appended to the file as found";
/// The most memory that opening and reading a few pages may allocate.
const MEMORY: usize = 8 << 20;

/// The first byte chooses the form; the others are pages of index and data in turn, after the
/// profile if there is one.
pub fn quick_queue(data: &[u8]) {
    let Some((form, rest)) = data.split_first() else { return };
    if rest.len() > 64 * PAGE {
        return;
    }
    let scratch = Scratch::new();
    let is_shared = form & 1 == 1;
    let dir = laid_out(&scratch, is_shared, rest);
    bounded(MEMORY, || {
        let before = read(&dir);
        let appended = append(&dir, is_shared);
        let after = read(&dir);
        if let (Ok(index), Ok((_, messages))) = (appended, &after) {
            let found = messages.iter().find(|(at, _)| *at == index);
            assert!(found.is_none_or(|(_, message)| message == APPENDED), "another message");
            let is_next = before.is_ok_and(|(end, _)| end == index);
            assert!(!is_next || found.is_some(), "appended and not read: {index:#x}");
        }
        fields(rest);
    });
}

fn laid_out(scratch: &Scratch, is_shared: bool, rest: &[u8]) -> PathBuf {
    let dir = scratch.with(&[]).join("queue");
    let (suffix, folder) =
        if is_shared { ("qmx", dir.join(PRODUCER)) } else { ("qx", dir.clone()) };
    fs::create_dir_all(&folder).unwrap();
    let (profile, pages) = rest.split_at(if is_shared { rest.len().min(PROFILE) } else { 0 });
    if is_shared {
        fs::write(dir.join(format!("{PRODUCER}.qm")), profile).unwrap();
    }
    for (number, page) in pages.chunks(PAGE).enumerate() {
        let mut page = page.to_vec();
        page.resize(PAGE, 0);
        let path = match number % 2 {
            0 => dir.join(format!("{}.{suffix}", number / 2)),
            _ => folder.join(format!("{}.qd", number / 2)),
        };
        fs::write(path, page).unwrap();
    }
    dir
}

fn open(dir: &Path, read_only: bool) -> Result<Arc<QuickQueue>> {
    let page_bytes = Some(PAGE as u64);
    let options =
        Options { read_only, create: true, page_bytes, file_mode: 0o600, allow_network: false };
    QuickQueue::open(dir, options)
}

type Messages = Vec<(u64, Vec<u8>)>;

/// Where reading ends, and all messages before it; an error if one cannot be read.
fn read(dir: &Path) -> Result<(u64, Messages)> {
    let queue = open(dir, true)?;
    let tailer = queue.tailer(false)?;
    let mut found = Messages::new();
    let mut read = tailer.read_many(&Detached::here(), usize::MAX, |message| {
        found.push((message.index, message.bytes.as_slice().to_vec()));
        true
    });
    if read.is_ok() && tailer.has_next(&Detached::here())? {
        read = tailer.read_many(&Detached::here(), 1, |_| true); // the error that follows messages
    }
    let end = tailer.index(&Detached::here())?;
    let _ = (queue.first_index(), queue.last_index(), queue.end());
    for index in (0..64).map(|number| number * 16 * 7) {
        at(&tailer, index);
    }
    tailer.to_end(&Detached::here())?;
    read.map(|_| (end, found))
}

fn at(tailer: &Tailer, index: u64) {
    if tailer.move_to_index(&Detached::here(), index).is_ok() {
        let _ = tailer.read(&Detached::here(), |message| message.bytes.as_slice().len());
    }
}

fn append(dir: &Path, is_shared: bool) -> Result<u64> {
    let queue = open(dir, false)?;
    let appender: Arc<Appender> = if is_shared {
        queue.producer(&mut Detached::here(), PRODUCER)?
    } else {
        queue.appender(&mut Detached::here())?
    };
    let index = appender.append(&Detached::here(), APPENDED)?;
    appender.append(&Detached::here(), APPENDED)?;
    queue.close(&Detached::here());
    Ok(index)
}

/// The bytes as fields, each kind from each position.
fn fields(message: &[u8]) {
    for position in 0..message.len().min(64) {
        let fields = Fields::from(message, position);
        let (mut text, mut units, mut counted) = (fields, fields, fields);
        let _ = (text.string(), units.unicode(), counted.counted("bytes"));
        assert!([text, units, counted].iter().all(|fields| fields.position() >= position));
        for legacy in [false, true] {
            let mut fields = fields;
            if let Ok(value) = Decimal::unpack(&mut fields, legacy) {
                assert!(!value.unscaled.is_empty() && fields.position() > position);
            }
        }
    }
}
