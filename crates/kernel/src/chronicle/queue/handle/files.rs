//! The roll files that a queue has open: each is mapped once, however many handles use it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use super::Queue;
use crate::chronicle::format::index::Shape;
use crate::chronicle::format::table::{self, NO_HIGHEST};
use crate::chronicle::protocol::compressed;
use crate::chronicle::protocol::create::{self, NewFile};
use crate::chronicle::protocol::file_events::FileEvents;
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::lock::append_lock::AppendLock;
use crate::chronicle::protocol::lock::guard::DetachedGuard;
use crate::chronicle::protocol::roll_file::{RollFile, View};
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::detached::Detached;
use crate::os::files;
use crate::os::interrupt;
use crate::os::own_directory::OwnDirectory;
use crate::probe::fault;
use crate::{Error, Result};

impl Queue {
    /// Prevents all other appends, as a sink does.
    pub fn take_append_lock(&self) -> Result<AppendLock> {
        self.check_open("queue")?;
        self.writable_table("the append lock")?;
        match &self.opened.table {
            Some(table) => AppendLock::take(Arc::clone(table)),
            None => Err(Error::closed("queue", self.path())),
        }
    }

    /// Its directory: the one with its table.
    pub fn own_directory(&self) -> Result<OwnDirectory> {
        let directory = OwnDirectory::open(self.path())?;
        if let Some(table) = self.table() {
            let found = directory.identity_of(table::FILE_NAME)?;
            if found.map(|(_, inode)| inode) != Some(table.shared.inode()) {
                table.shared.check_present()?;
                return Err(Error::gone("replaced while it was opened", self.path()));
            }
        }
        Ok(directory)
    }

    /// The events of files opened and released, if requested.
    #[must_use]
    pub const fn file_events(&self) -> Option<&Arc<FileEvents>> {
        self.file_events.as_ref()
    }

    /// The file of a cycle, if a handle of this queue has it open.
    #[must_use]
    pub fn open_file(&self, cycle: i32) -> Option<Arc<RollFile>> {
        self.lock_files().get(&cycle).and_then(Weak::upgrade)
    }

    /// The file of a cycle, opened if necessary; None if it is missing or not ready, or if another
    /// roll file was opened alone.
    pub fn file(&self, cycle: i32) -> Result<Option<Arc<RollFile>>> {
        if self.opened.single.is_some_and(|only| only != cycle) {
            return Ok(None);
        }
        if let Some(file) = self.open_file(cycle) {
            return Ok(Some(file));
        }
        let path = self.file_for_cycle(cycle)?;
        // Ctrl-C ends a long decompression. The caller may be a tailer whose state is locked: this
        // is the only place where signal handlers run nevertheless, and they must not use that
        // tailer.
        let pause = &mut || interrupt::check(&mut Detached::here());
        let file = compressed::open_cycle(&path, cycle, !self.is_read_only(), pause)?;
        if file.is_some() {
            // Checked after the file was opened by name: it may belong to another queue.
            self.table().map_or(Ok(()), |table| table.shared.check_not_replaced())?;
        }
        Ok(file.map(|file| self.remember(file)))
    }

    /// A view of a cycle's file; None if it is missing or not ready.
    pub fn view(&self, cycle: i32) -> Result<Option<View>> {
        Ok(self.file(cycle)?.map(View::new))
    }

    /// A view of a cycle's file for appending, created if necessary.
    pub fn view_for_append(
        &self,
        table: &TableStore,
        cycle: i32,
        guard: &DetachedGuard<'_>,
    ) -> Result<View> {
        let (file, created) = self.file_for_append(cycle, guard)?;
        // It was created early, or its creator died before it announced the file.
        if created || table.value(table.words().highest, NO_HIGHEST) < i64::from(cycle) {
            listing::note_created(table, cycle);
        }
        Ok(View::new(file))
    }

    /// The file of a cycle, created if necessary, and whether it was. It is not added to the
    /// listing: a file that is created before its cycle begins must not draw appenders there.
    pub fn file_for_append(
        &self,
        cycle: i32,
        guard: &DetachedGuard<'_>,
    ) -> Result<(Arc<RollFile>, bool)> {
        let path = self.file_for_cycle(cycle)?;
        if let Some(file) = self.open_file(cycle).filter(|file| is_same_file(file, &path)) {
            return create::check_writable(&file).map(|()| (file, false));
        }
        self.check_not_compressed(cycle)?;
        let (file, created) = create::open_or_create(&path, cycle, &self.new_file(), guard)?;
        self.counting.count_file(created);
        Ok((self.remember(file), created))
    }

    /// How the index of a new file numbers messages.
    #[must_use]
    pub const fn index_shape(&self) -> Shape {
        Shape { index_count: self.opened.index_count, index_spacing: self.opened.index_spacing }
    }

    fn new_file(&self) -> NewFile {
        let shape = self.index_shape();
        let (mode, fieldless) = (self.options.file_mode, self.is_fieldless());
        NewFile { shape, growth: self.growth(), mode, fieldless }
    }

    fn remember(&self, mut file: RollFile) -> Arc<RollFile> {
        file.event = self.file_events().map(|events| events.open(file.cycle, file.path()));
        let file = Arc::new(file);
        let mut files = self.lock_files();
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(file.cycle, Arc::downgrade(&file));
        file
    }

    /// Warns when the disk that `file` lies on is almost full.
    pub fn look_at_space(&self, file: &RollFile) {
        self.low_space.look(&file.window);
    }

    /// The same for the newest file, if a handle has it open.
    pub fn look_at_space_of_newest(&self) {
        let newest = i32::try_from(self.highest_cycle()).ok().and_then(|it| self.open_file(it));
        if let Some(file) = newest {
            self.look_at_space(&file);
        }
    }

    /// Makes the next handle open a cycle's file again, because this one has lost its name.
    pub fn forget_file(&self, file: &Arc<RollFile>) {
        let is_another = |open: &Weak<RollFile>| !std::ptr::eq(open.as_ptr(), Arc::as_ptr(file));
        self.lock_files().retain(|_, open| is_another(open));
    }

    pub(super) fn lock_files(&self) -> MutexGuard<'_, HashMap<i32, Weak<RollFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same_file(file: &RollFile, path: &Path) -> bool {
    let open = fault::call!("create.same-file.stat", file.window.file().metadata());
    let named = fault::call!("create.same-file.stat", std::fs::symlink_metadata(path));
    matches!((open, named), (Ok(a), Ok(b)) if files::identity_of(&a) == files::identity_of(&b))
}
