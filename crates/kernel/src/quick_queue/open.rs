//! Decides how to open a path, by its existing files.

use std::path::{Path, PathBuf};

use crate::os::detached::Detached;
use crate::os::files::{self, Access, OwnName};
use crate::os::locked_file::LockedFile;
use crate::os::paths;
use crate::os::range_lock::{Kind, Range, WHOLE_FILE};
use crate::probe::fault;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::files as names;
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::protocol::directory::{Form, Layout, Listing};
use crate::quick_queue::protocol::pending::profile_path;
use crate::quick_queue::protocol::repair::repair;
use crate::quick_queue::protocol::survey::layout_of_many;
use crate::quick_queue::queue::Options;
use crate::{Error, Result};

/// The byte of the lock file that writers lock: a single writer exclusively, producers shared.
const WRITERS: Range = Range { start: 0, length: 1 };

/// Prepares the directory at `path`; returns its absolute path, its name, and the queue's layout if
/// known.
pub fn open(path: &Path, options: &Options) -> Result<(PathBuf, OwnName, Option<Layout>)> {
    paths::check_local(path)?;
    let dir = std::path::absolute(path).map_err(|e| Error::io("cannot find", path, e))?;
    page_size(options)?;
    let made = prepare_directory(&dir, options)?;
    let layout = match layout_of_many(&dir)? {
        None => layout_by_listing(&dir, options)?,
        found => found,
    };
    if !options.read_only {
        mark(&dir, options.file_mode)?;
    }
    Ok((dir, OwnName::new(made), layout))
}

fn layout_by_listing(dir: &Path, options: &Options) -> Result<Option<Layout>> {
    let listing = Listing::of(dir)?;
    let refuse = |why: String| Err(Error::NotAQuickQueue { why, path: dir.to_path_buf() });
    if let Some(foreign) = &listing.foreign {
        return refuse(format!("it holds a file of another format: file={foreign}"));
    }
    if !listing.is_quick_queue() && (options.read_only || !options.create) {
        return refuse("no *.qx, *.qmx or *.qm file".to_owned());
    }
    listing.layout(dir)
}

/// The page size for a new queue.
pub fn page_size(options: &Options) -> Result<PageSize> {
    let Some(bytes) = options.page_bytes else { return Ok(PageSize::DEFAULT) };
    PageSize::new(bytes).ok_or_else(|| {
        let limits = (PageSize::SMALLEST.bytes(), PageSize::LARGEST.bytes());
        Error::Invalid(format!(
            "not a page size: page_bytes={bytes} expected=a power of two from {} to {}",
            limits.0, limits.1
        ))
    })
}

/// The lock of the single writer, and the layout that the queue has or will have.
pub fn claim_single(
    may_wait: &mut Detached,
    dir: &Path,
    options: &Options,
) -> Result<(LockedFile, Layout)> {
    let (path, mode) = (dir.join(names::LOCK), options.file_mode);
    let lock = LockedFile::take(&path, mode, WRITERS, Kind::Exclusive, may_wait)?;
    let lock = lock.ok_or_else(|| Error::WriterInUse {
        what: "the queue has another writer".to_owned(),
        path: dir.to_path_buf(),
    })?;
    let layout = layout_for(dir, Form::Single, options)?;
    repair(may_wait, dir, layout, options.file_mode)?;
    Ok((lock, layout))
}

/// The locks of a producer, and the layout that the queue has or will have.
pub fn claim_producer(
    may_wait: &mut Detached,
    dir: &Path,
    producer: Producer,
    options: &Options,
) -> Result<((LockedFile, LockedFile), Layout)> {
    let in_use = |what: String| Error::WriterInUse { what, path: dir.to_path_buf() };
    let (path, mode) = (dir.join(names::LOCK), options.file_mode);
    let queue = LockedFile::take(&path, mode, WRITERS, Kind::Shared, may_wait)?;
    let queue = queue.ok_or_else(|| in_use("the queue has a single writer".to_owned()))?;
    let layout = layout_for(dir, Form::Shared, options)?;
    repair(may_wait, dir, layout, options.file_mode)?;
    let profile = profile_path(dir, producer);
    let lock = LockedFile::take(&profile, mode, WHOLE_FILE, Kind::Exclusive, may_wait)?;
    let name_used = || in_use(format!("the producer is in use: producer={producer}"));
    Ok(((queue, lock.ok_or_else(name_used)?), layout))
}

fn layout_for(dir: &Path, form: Form, options: &Options) -> Result<Layout> {
    let mut layout = layout_of_many(dir)?;
    if layout.is_none() {
        let listing = Listing::of(dir)?;
        if let Some(found) = listing.form(dir)?.filter(|found| *found != form) {
            return Err(wrong_form(dir, found));
        }
        layout = listing.layout(dir)?;
    }
    match layout {
        Some(found) if found.form != form => Err(wrong_form(dir, found.form)),
        Some(found) => Ok(found),
        None => Ok(Layout { form, size: page_size(options)? }),
    }
}

fn wrong_form(dir: &Path, found: Form) -> Error {
    let (holds, asks) = match found {
        Form::Single => ("the messages of a single writer", "queue.appender()"),
        Form::Shared => ("the messages of named producers", "queue.appender(\"AA0\")"),
    };
    Error::Unsupported(format!(
        "another kind of writer in this queue: it holds {holds}, use {asks} path={}",
        dir.display()
    ))
}

/// Creates the directory if missing; returns the directories created.
fn prepare_directory(dir: &Path, options: &Options) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    let refuse =
        |why: &str| Err(Error::NotAQuickQueue { why: why.to_owned(), path: dir.to_path_buf() });
    match fault::call!("quick-queue.path.stat", std::fs::metadata(dir)) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return refuse("a queue is a directory"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if options.read_only || !options.create {
                return refuse("no such directory");
            }
            made = make_directory(dir, options)?;
        }
        Err(error) => return Err(Error::io("cannot open", dir, error)),
    }
    match files::network_file_system_of(dir)? {
        Some(name) if !options.read_only && !options.allow_network => {
            Err(Error::Unsupported(format!(
                "writing on a network file system: file_system={name} path={} (locks and shared \
                 memory do not reach other hosts; allow_network=True if only one host uses the \
                 queue)",
                dir.display()
            )))
        }
        _ => Ok(made),
    }
}

fn make_directory(dir: &Path, options: &Options) -> Result<Vec<PathBuf>> {
    let permissions = options.file_mode | (options.file_mode & 0o444) >> 2 | 0o100;
    let made = fault::call!("quick-queue.dir.create", files::make_directories(dir, permissions));
    made.map_err(|e| Error::io("cannot create", dir, e))
}

/// Creates the lock file, so that the directory shows its format before the first message.
fn mark(dir: &Path, file_mode: u32) -> Result<()> {
    let access = Access { write: true, create_mode: Some(file_mode) };
    files::open(&dir.join(names::LOCK), access).map(drop)
}
