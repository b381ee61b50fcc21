//! Leaving a cycle (`docs/protocol.md`, "Roll").
//!
//! 1. walk to the end of the file; 2. CAS the header there from 0 to end-of-data; 3. store "EOF"
//!    after it, for people who read hex; then the next file is opened or created.
//!
//! An incomplete header at the end belongs to a writer that died or lost the lock by force. It is
//! replaced at once, as in an append, since others wait for the lock. A crash before 2 leaves a
//! file without the marker: the next appender writes it, and tailers leave such a file after a
//! grace time.

use super::lock::guard::DetachedGuard;
use super::roll_file::{Slot, View};
use super::{create, locate, publish};
use crate::chronicle::format::blocks::Growth;
use crate::chronicle::format::document::{EOF_DECORATION, HEADER_LEN, NOT_INITIALIZED};
use crate::{Result, warnings};

/// Writes the end-of-file marker; false if the file already had it.
pub fn write_eof(view: &mut View, growth: Growth, guard: &DetachedGuard<'_>) -> Result<bool> {
    loop {
        let end = locate::end(view)?;
        let found = match end.slot {
            Slot::Waiting(found) => found,
            Slot::EndOfData => return Ok(false),
            Slot::Document(_) => continue,
        };
        let position = end.position;
        let past = position + HEADER_LEN + EOF_DECORATION.len() as u64;
        view.make_writable(position, past, growth, guard)?;
        if create::is_of_version_4(view.file()) {
            publish::end_old_file(view.region(), position, guard);
            return Ok(true);
        }
        if publish::end_file(view.region(), position, found, guard).is_ok() {
            if found != NOT_INITIALIZED {
                warnings::leave(format!(
                    "an unfinished document was closed by the end-of-file marker: file={} \
                     position={position:#x} header={found:#010x}",
                    view.file().path().display()
                ));
            }
            return Ok(true);
        }
    }
}
