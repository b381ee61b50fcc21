//! The tables this process has open for writing, each once.
//!
//! Record locks on Linux belong to the file's description, which a forked child shares: a table's
//! descriptor must be one that the child can find and replace (`fork.rs`). So each is registered
//! before the first lock is taken on it, and opened again if a fork came between. The lock on this
//! list is held for no more than a look at it: nothing waits, and no system call is made, while other
//! threads want to open other queues. Threads that open the same table take turns at its own gate.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::file;
use super::store::TableStore;
use crate::chronicle::format::table::{self, Metadata};
use crate::os::files::{self, Access};
use crate::os::process;
use crate::probe::fault::step;
use crate::{Error, Result};

/// A table that this process has open, or is opening.
struct OpenTable {
    /// Of the process (its generation) and of the file (device, inode number).
    identity: (u32, (u64, u64)),
    file: Weak<File>,
    gate: Gate,
}

/// Held while the table is opened; afterwards it holds the open table.
type Gate = Arc<Mutex<Weak<TableStore>>>;

/// The list.
pub struct OpenTables {
    /// How often this process was about to fork.
    forks: u64,
    tables: Vec<OpenTable>,
}

static OPEN_TABLES: Mutex<OpenTables> = Mutex::new(OpenTables { forks: 0, tables: Vec::new() });

fn open_tables() -> MutexGuard<'static, OpenTables> {
    OPEN_TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Right before a fork: holds the list until the fork is over.
pub fn hold() -> MutexGuard<'static, OpenTables> {
    let mut open = open_tables();
    open.forks += 1;
    open
}

/// In a forked child: lets the parent's record locks end with the parent.
pub fn detach(open: &mut OpenTables) {
    let inherited = open.tables.drain(..).filter_map(|open| open.file.upgrade());
    inherited.for_each(|file| files::detach_descriptor(&file));
}

/// Opens the table of `dir` for writing. A table that is missing, or was never completed, is made as
/// `wanted`; without that the result is None. Its file's locks are waited for up to `timeout`.
pub fn open_or_create(
    dir: &Path,
    wanted: Option<&Metadata>,
    file_mode: u32,
    timeout: Duration,
) -> Result<Option<Arc<TableStore>>> {
    let path = dir.join(table::FILE_NAME);
    Opened::new(&path, file_mode)?.join_or_create(&path, wanted, timeout)
}

/// A table's file, opened and registered.
struct Opened {
    file: Arc<File>,
    /// Device and inode number.
    identity: (u64, u64),
    gate: Gate,
}

impl Opened {
    /// Opens the table at `path`, made if there is none.
    fn new(path: &Path, file_mode: u32) -> Result<Self> {
        loop {
            let before = open_tables().forks;
            let (file, identity) = open(path, file_mode)?;
            let mut open = open_tables();
            if open.forks == before {
                let gate = open.register(identity, &file);
                return Ok(Self { file, identity, gate });
            }
        }
    }

    /// The table as another queue of this process has it, or a new one.
    fn join_or_create(
        self,
        path: &Path,
        wanted: Option<&Metadata>,
        timeout: Duration,
    ) -> Result<Option<Arc<TableStore>>> {
        file::patiently(
            timeout,
            || true,
            |step| {
                let mut opened = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(table) = opened.upgrade().filter(|table| table.shared.join()) {
                    return Ok(Some(table));
                }
                let (path, file) = (path.to_path_buf(), Arc::clone(&self.file));
                let created = TableStore::create(path, file, self.identity, wanted, step)?;
                let Some(mut table) = created else { return Ok(None) };
                table.set_timeout(timeout);
                let table = Arc::new(table);
                *opened = Arc::downgrade(&table);
                Ok(Some(table))
            },
        )
    }
}

fn open(path: &Path, file_mode: u32) -> Result<(Arc<File>, (u64, u64))> {
    let access = Access { write: true, create_mode: Some(file_mode) };
    let file = files::open(path, access)?.ok_or_else(|| {
        Error::gone("cannot create, as its directory was removed or renamed", path)
    })?;
    step!("table.file.open").made();
    let identity = files::identity(&file).map_err(|e| Error::io("cannot open", path, e))?;
    Ok((Arc::new(file), identity))
}

impl OpenTables {
    fn register(&mut self, identity: (u64, u64), file: &Arc<File>) -> Gate {
        self.tables.retain(|open| open.file.strong_count() > 0);
        let identity = (process::generation(), identity);
        let known = self.tables.iter().find(|open| open.identity == identity);
        let gate = known.map(|open| Arc::clone(&open.gate)).unwrap_or_default();
        let file = Arc::downgrade(file);
        self.tables.push(OpenTable { identity, file, gate: Arc::clone(&gate) });
        gate
    }
}
