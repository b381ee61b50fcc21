//! The tables that this process has open for writing, each opened only once.
//!
//! The lock on this list is held only briefly, without waits or system calls, so that threads can
//! open other queues meanwhile. Threads that open the same table are serialised by that table's
//! gate.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::store::TableStore;
use crate::chronicle::format::table::{self, Metadata};
use crate::os::detached::SharedState;
use crate::os::files::{self, Access};
use crate::os::fork::{ForkMutex, Inherited};
use crate::os::interrupt::Signals;
use crate::os::locked_file::{self, LockedFile};
use crate::probe::fault::step;
use crate::{Error, Result};

/// A table that this process has open, or is opening.
struct OpenTable {
    /// Device and inode number.
    identity: (u64, u64),
    file: Weak<LockedFile>,
    gate: Gate,
}

/// Locked while the table is opened; afterwards it contains the open table.
type Gate = Arc<SharedState<Weak<TableStore>>>;

/// The list.
struct OpenTables(Vec<OpenTable>);

static OPEN_TABLES: ForkMutex<OpenTables> = ForkMutex::new(OpenTables(Vec::new()));

impl Inherited for OpenTables {
    /// A child opens its own tables; the parent's gates may be held by threads that do not exist
    /// there.
    fn after_fork_in_child(&mut self) {
        self.0.clear();
    }
}

/// Opens the table of `dir` for writing. A table that is missing, or was never completed, is
/// created as `wanted`; None if that is None. Waits up to `timeout` for locks of its file.
pub fn open_or_create(
    dir: &Path,
    wanted: Option<&Metadata>,
    file_mode: u32,
    timeout: Duration,
    signals: Signals<'_>,
) -> Result<Option<Arc<TableStore>>> {
    let path = dir.join(table::FILE_NAME);
    Opened::new(&path, file_mode)?.join_or_create(&path, wanted, timeout, signals)
}

/// A table's file, opened and listed.
struct Opened {
    file: Arc<LockedFile>,
    /// Device and inode number.
    identity: (u64, u64),
    gate: Gate,
}

impl Opened {
    /// Opens the table's file at `path`, created if missing.
    fn new(path: &Path, file_mode: u32) -> Result<Self> {
        let file = Arc::new(open(path, file_mode)?);
        let identity = files::identity(&file).map_err(|e| Error::io("cannot open", path, e))?;
        let gate = OPEN_TABLES.lock().add(identity, &file);
        Ok(Self { file, identity, gate })
    }

    /// The table that another queue of this process has open, or a new one.
    fn join_or_create(
        self,
        path: &Path,
        wanted: Option<&Metadata>,
        timeout: Duration,
        signals: Signals<'_>,
    ) -> Result<Option<Arc<TableStore>>> {
        locked_file::patiently(signals, timeout, |may_wait, step| {
            let mut opened = self.gate.lock(may_wait);
            if let Some(table) = opened.upgrade().filter(|table| table.shared.join()) {
                return Ok(Some(table));
            }
            let (path, file) = (path.to_path_buf(), Arc::clone(&self.file));
            let created = TableStore::create(path, file, self.identity, wanted, step, may_wait)?;
            let Some(mut table) = created else { return Ok(None) };
            table.set_timeout(timeout);
            let table = Arc::new(table);
            *opened = Arc::downgrade(&table);
            Ok(Some(table))
        })
    }
}

fn open(path: &Path, file_mode: u32) -> Result<LockedFile> {
    let access = Access { write: true, create_mode: Some(file_mode) };
    let opened = LockedFile::open(|| {
        let file = files::open(path, access)?;
        step!("table.file.open").made();
        Ok(file)
    })?;
    opened
        .ok_or_else(|| Error::gone("cannot create, as its directory was removed or renamed", path))
}

impl OpenTables {
    fn add(&mut self, identity: (u64, u64), file: &Arc<LockedFile>) -> Gate {
        self.0.retain(|open| open.file.strong_count() > 0);
        let known = self.0.iter().find(|open| open.identity == identity);
        let gate = known.map(|open| Arc::clone(&open.gate)).unwrap_or_default();
        let file = Arc::downgrade(file);
        self.0.push(OpenTable { identity, file, gate: Arc::clone(&gate) });
        gate
    }
}
