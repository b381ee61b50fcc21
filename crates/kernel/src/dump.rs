//! Every document of a file as text: positions, headers, payloads in hexadecimal. A dump comes in
//! pieces, so that a file of any length passes through little memory.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use crate::format::document::{self, HEADER_LEN, Header};
use crate::format::roll_cycle::SUFFIX;
use crate::format::table;
use crate::protocol::create;
use crate::protocol::roll_file::{Slot, View};
use crate::protocol::table_store::TableStore;
use crate::queue::Queue;
use crate::{Error, Result};

const BYTES_PER_LINE: usize = 16;

/// Dumps the table store, then every roll file in the order of their cycles.
pub fn dump(queue: &Queue) -> Result<String> {
    let mut out = String::new();
    if let Some(table) = queue.table() {
        title(&mut out, table.path());
        Dump::new(Source::Table(table)).put_all(&mut out)?;
    }
    for cycle in queue.cycles()? {
        title(&mut out, &queue.file_for_cycle(cycle)?);
        Dump::new(source(queue.view(cycle)?)).put_all(&mut out)?;
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
    Roll(Box<View>),
    Unready,
}

fn source(view: Option<View>) -> Source<'static> {
    view.map_or(Source::Unready, |view| Source::Roll(Box::new(view)))
}

/// The dump of one file.
pub struct Dump<'a> {
    source: Source<'a>,
    position: u64,
    sequence: Option<u64>,
    is_over: bool,
}

impl Dump<'static> {
    /// The dump of a roll file or a table store, told apart by name.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_table = name == table::FILE_NAME;
        if !is_table && !name.ends_with(SUFFIX) {
            let why = format!("neither {} nor a *{SUFFIX} file", table::FILE_NAME);
            return Err(Error::NotAQueue { why, path: path.to_path_buf() });
        }
        std::fs::metadata(path).map_err(|error| Error::io("cannot open", path, error))?;
        Ok(Self::new(if is_table {
            TableStore::open_file_read_only(path)?.map_or(Source::Unready, Source::Owned)
        } else {
            source(create::open_existing(path, 0, false)?.map(|file| View::new(Arc::new(file))))
        }))
    }
}

impl<'a> Dump<'a> {
    const fn new(source: Source<'a>) -> Self {
        Self { source, position: 0, sequence: None, is_over: false }
    }

    /// Appends what comes next, until `out` holds `enough` bytes; false once the file is over.
    pub fn put_more(&mut self, out: &mut String, enough: usize) -> Result<bool> {
        while !self.is_over && out.len() < enough {
            self.is_over = match &mut self.source {
                Source::Table(table) => {
                    put_entry(out, table, &mut self.position, &mut self.sequence)
                }
                Source::Owned(table) => {
                    put_entry(out, table, &mut self.position, &mut self.sequence)
                }
                Source::Roll(view) => {
                    put_document(out, view, &mut self.position, &mut self.sequence)?
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
    let header = if *position + HEADER_LEN <= cells.len() {
        document::parse(cells.load_header_acquire(*position))
    } else {
        Header::Waiting
    };
    let (length, is_metadata) = match header {
        Header::Data(length) => (length, false),
        Header::Meta(length) => (length, true),
        Header::Waiting | Header::EndOfData => {
            remaining(out, cells.len().saturating_sub(*position));
            return true;
        }
    };
    let next = document::next(*position, length, true);
    if next > cells.len() {
        let _ = writeln!(out, "# position: {position} the entry ends past the end of the table");
        return true;
    }
    let payload = cells.bytes(*position + HEADER_LEN, u64::from(length));
    put(out, *position, is_metadata, sequence, payload);
    *position = next;
    false
}

/// Puts the document at `position`, or the end of the file: then it returns true.
fn put_document(
    out: &mut String,
    view: &mut View,
    position: &mut u64,
    sequence: &mut Option<u64>,
) -> Result<bool> {
    match view.slot(*position) {
        Ok(Slot::Document(found)) => {
            put(out, *position, found.is_metadata, sequence, view.payload(&found));
            *position = found.next;
            return Ok(false);
        }
        Ok(Slot::EndOfData) => {
            let _ = writeln!(out, "# position: {position}, header: {} EOF", number(*sequence));
        }
        Ok(Slot::Waiting(0)) => {}
        Ok(Slot::Waiting(word)) => {
            let _ = writeln!(out, "# position: {position}, not ready: {word:#010x}");
        }
        Err(error @ (Error::Corrupt { .. } | Error::Hole { .. })) => {
            let _ = writeln!(out, "# {error}");
            return Ok(true);
        }
        Err(error) => return Err(error),
    }
    remaining(out, view.file().window.file_len().saturating_sub(*position));
    Ok(true)
}

fn put(
    out: &mut String,
    position: u64,
    is_metadata: bool,
    sequence: &mut Option<u64>,
    payload: &[u8],
) {
    if !is_metadata {
        *sequence = Some(sequence.map_or(0, |sequence| sequence + 1));
    }
    let _ = writeln!(out, "# position: {position}, header: {}", number(*sequence));
    let kind = if is_metadata { "!!meta-data" } else { "!!data" };
    let _ = writeln!(out, "--- {kind} #binary length: {}", payload.len());
    for (line, bytes) in payload.chunks(BYTES_PER_LINE).enumerate() {
        let _ = write!(out, "{:08x} ", line * BYTES_PER_LINE);
        for byte in bytes {
            let _ = write!(out, " {byte:02x}");
        }
        out.push('\n');
    }
}

fn number(sequence: Option<u64>) -> String {
    sequence.map_or("-1".to_owned(), |sequence| sequence.to_string())
}

fn remaining(out: &mut String, bytes: u64) {
    let _ = writeln!(out, "...\n# {bytes} bytes remaining");
}
