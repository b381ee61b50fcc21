//! Every document of a queue as text: positions, headers, payloads in hexadecimal.

use std::fmt::Write;

use crate::format::document::{self, HEADER_LEN, Header};
use crate::protocol::roll_file::{Slot, View};
use crate::protocol::table_store::TableStore;
use crate::queue::Queue;
use crate::{Error, Result};

const BYTES_PER_LINE: usize = 16;

/// Dumps the table store, then every roll file in the order of their cycles.
pub fn dump(queue: &Queue) -> Result<String> {
    let mut out = String::new();
    if let Some(table) = queue.table() {
        dump_table(&mut out, table);
    }
    for cycle in queue.cycles()? {
        title(&mut out, &queue.file_for_cycle(cycle)?);
        match queue.view(cycle)? {
            Some(mut view) => dump_file(&mut out, &mut view)?,
            None => out.push_str("# no ready header\n"),
        }
    }
    Ok(out)
}

fn title(out: &mut String, path: &std::path::Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let _ = writeln!(out, "## {name}");
}

fn dump_table(out: &mut String, table: &TableStore) {
    title(out, table.path());
    let (cells, mut position, mut sequence) = (table.cells(), 0, None);
    while position + HEADER_LEN <= cells.len() {
        let (length, is_metadata) = match document::parse(cells.load_header_acquire(position)) {
            Header::Data(length) => (length, false),
            Header::Meta(length) => (length, true),
            Header::Waiting | Header::EndOfData => break,
        };
        let next = document::next(position, length, true);
        if next > cells.len() {
            let _ =
                writeln!(out, "# position: {position} the entry ends past the end of the table");
            return;
        }
        let payload = cells.bytes(position + HEADER_LEN, u64::from(length));
        put(out, position, is_metadata, &mut sequence, payload);
        position = next;
    }
    remaining(out, cells.len().saturating_sub(position));
}

fn dump_file(out: &mut String, view: &mut View) -> Result<()> {
    let (mut position, mut sequence) = (0, None);
    loop {
        match view.slot(position) {
            Ok(Slot::Document(found)) => {
                put(out, position, found.is_metadata, &mut sequence, view.payload(&found));
                position = found.next;
            }
            Ok(Slot::EndOfData) => {
                let _ = writeln!(out, "# position: {position}, header: {} EOF", number(sequence));
                break;
            }
            Ok(Slot::Waiting(0)) => break,
            Ok(Slot::Waiting(word)) => {
                let _ = writeln!(out, "# position: {position}, not ready: {word:#010x}");
                break;
            }
            Err(error @ (Error::Corrupt { .. } | Error::Hole { .. })) => {
                let _ = writeln!(out, "# {error}");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    remaining(out, view.file().window.file_len().saturating_sub(position));
    Ok(())
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
