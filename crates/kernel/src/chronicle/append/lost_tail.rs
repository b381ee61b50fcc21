//! Named tailers whose file lost its tail, as after a power cut or a restore from an older copy.
//!
//! Such a tailer's stored position lies past the end of the file. Once the file has been appended
//! to past that position nothing shows the loss, and the tailer would skip the messages that filled
//! the gap. So an appender checks before its first append to a file, under the write lock: a
//! position past the end is moved back to the end, where the first message after the loss will be.

use super::tail::Tail;
use crate::chronicle::format::table::{TAILER_PREFIX, is_replicated};
use crate::chronicle::protocol::lock::guard::{DetachedGuard, WriteGuard};
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::Queue;
use crate::probe::fault::step;
use crate::{Result, warnings};

/// Moves named tailers that are past the end of the file to be appended to back to its end.
pub fn rewind_tailers(
    queue: &Queue,
    table: &TableStore,
    tail: &Tail,
    _guard: &WriteGuard<'_>,
) -> Result<()> {
    let end = tail.next_index();
    let last_of_cycle = queue.roll().to_index(tail.view.file().cycle, 0)?
        | queue.roll().sequence_mask().cast_signed();
    for (name, stored) in queue.named_tailers()? {
        // `last_of_cycle` itself is valid: it is the position of a tailer that read backward to the
        // next cycle's start.
        if stored > end && stored < last_of_cycle {
            rewind_tailer(table, &name, stored, end)?;
        }
    }
    Ok(())
}

/// Moves every named tailer that is past `end` back to it: later messages were removed from the
/// queue.
pub fn rewind_past(
    queue: &Queue,
    table: &TableStore,
    end: i64,
    _guard: &DetachedGuard<'_>,
) -> Result<()> {
    for (name, stored) in queue.named_tailers()?.into_iter().filter(|(_, stored)| *stored > end) {
        rewind_tailer(table, &name, stored, end)?;
    }
    Ok(())
}

fn rewind_tailer(table: &TableStore, name: &str, stored: i64, end: i64) -> Result<()> {
    let key = format!("{TAILER_PREFIX}{name}");
    let Some(position) = table.find(&key)? else { return Ok(()) };
    let (cells, old, new) = (table.cells(), stored.cast_unsigned(), end.cast_unsigned());
    if cells.swap_acq_rel(position, old, new, step!("tailer.index.store")).is_err() {
        return Ok(()); // its reader stored another position meanwhile
    }
    if is_replicated(name)
        && let Some(version) = table.find(&format!("{key}.version"))?
    {
        cells.add_acq_rel(version, 1, step!("tailer.version.add"));
    }
    warnings::leave(format!(
        "the end of a file was lost, with messages that a tailer had read; it continues with the \
         first new one: tailer={name} stored={stored:#x} continued_at={end:#x} path={}",
        table.path().display()
    ));
    Ok(())
}
