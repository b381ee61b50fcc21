//! The content of a queue's directory: its form, its page size and its pages.

use std::path::{Path, PathBuf};

use crate::os::files;
use crate::probe::fault;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::files::{self as names, Name};
use crate::quick_queue::format::producer::Producer;
use crate::{Error, Result};

/// How a queue is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By one writer.
    Single,
    /// By named producers, which share the index.
    Shared,
}

/// The layout of a queue, known once its first page exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How it is written.
    pub form: Form,
    /// How long its pages are.
    pub size: PageSize,
}

/// The lowest and the highest page of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first page.
    pub lowest: u32,
    /// The last page.
    pub highest: u32,
}

/// The names in a queue's directory.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    data: Option<Span>,
    single: Option<Span>,
    shared: Option<Span>,
    producers: Vec<Producer>,
    /// Whether the directory is marked as a Quick-Queue.
    pub is_marked: bool,
    /// A file of another format, if there is one.
    pub foreign: Option<String>,
}

impl Listing {
    /// Lists a directory.
    pub fn of(dir: &Path) -> Result<Self> {
        let failed = |e| Error::io("cannot list", dir, e);
        let mut listing = Self::default();
        for entry in fault::call!("quick-queue.dir.read", std::fs::read_dir(dir)).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            match names::parse(name) {
                Some(Name::Data(page)) => add(&mut listing.data, page),
                Some(Name::SingleIndex(page)) => add(&mut listing.single, page),
                Some(Name::SharedIndex(page)) => add(&mut listing.shared, page),
                Some(Name::Profile(producer)) => listing.producers.push(producer),
                Some(Name::Lock) => listing.is_marked = true,
                None if is_foreign(name) => listing.foreign = Some(name.to_owned()),
                None => {}
            }
        }
        Ok(listing)
    }

    /// A listing of only the pages of an index.
    #[must_use]
    pub fn of_index(form: Form, pages: Span) -> Self {
        match form {
            Form::Single => Self { single: Some(pages), ..Self::default() },
            Form::Shared => Self { shared: Some(pages), ..Self::default() },
        }
    }

    /// Whether any file is one of a Quick-Queue.
    #[must_use]
    pub fn is_quick_queue(&self) -> bool {
        self.is_marked || self.is_single() || self.is_shared()
    }

    fn is_single(&self) -> bool {
        self.data.is_some() || self.single.is_some()
    }

    fn is_shared(&self) -> bool {
        self.shared.is_some() || !self.producers.is_empty()
    }

    /// The form of the queue; None while it has no pages. An error if there are files of both.
    pub fn form(&self, dir: &Path) -> Result<Option<Form>> {
        match (self.is_single(), self.is_shared()) {
            (true, true) => Err(Error::NotAQuickQueue {
                why: "it holds files of a single writer (*.qd, *.qx) and of named producers \
                      (*.qm, *.qmx)"
                    .into(),
                path: dir.to_path_buf(),
            }),
            (true, false) => Ok(Some(Form::Single)),
            (false, true) => Ok(Some(Form::Shared)),
            (false, false) => Ok(None),
        }
    }

    /// The index pages of a form.
    #[must_use]
    pub const fn index(&self, form: Form) -> Option<Span> {
        match form {
            Form::Single => self.single,
            Form::Shared => self.shared,
        }
    }

    /// The data pages of the directory itself: a single writer's, or those of a producer.
    #[must_use]
    pub const fn data(&self) -> Option<Span> {
        self.data
    }

    /// The named producers.
    #[must_use]
    pub fn producers(&self) -> &[Producer] {
        &self.producers
    }

    /// The form and the page size; None while no page has its length.
    pub fn layout(&self, dir: &Path) -> Result<Option<Layout>> {
        let Some(form) = self.form(dir)? else { return Ok(None) };
        let mut found: Option<(PathBuf, u64)> = None;
        for path in self.first_pages(dir) {
            let Some(length) = length_of(&path)? else { continue };
            match &found {
                Some((other, known)) if *known != length => {
                    let expected = format!("{known} bytes, as {}", other.display());
                    return Err(bad_length(&path, length, expected));
                }
                Some(_) => {}
                None => found = Some((path, length)),
            }
        }
        let Some((path, length)) = found else { return Ok(None) };
        let size = PageSize::new(length).ok_or_else(|| {
            bad_length(&path, length, "a power of two from 16 bytes to 1 GiB".to_owned())
        })?;
        Ok(Some(Layout { form, size }))
    }

    /// The first page of each kind.
    fn first_pages(&self, dir: &Path) -> Vec<PathBuf> {
        let kinds = [
            (self.single, names::SINGLE_INDEX),
            (self.shared, names::SHARED_INDEX),
            (self.data, names::DATA),
        ];
        let mut paths: Vec<_> = kinds
            .iter()
            .filter_map(|(span, suffix)| Some(dir.join(format!("{}.{suffix}", (*span)?.lowest))))
            .collect();
        if self.shared.is_none() {
            let first = |producer: &Producer| dir.join(producer.as_str()).join("0.qd");
            paths.extend(self.producers.iter().map(first));
        }
        paths
    }
}

/// The parsed names in a directory of page files; none if the directory is missing.
pub fn names_in(dir: &Path) -> Result<Vec<Name>> {
    let failed = |e| Error::io("cannot list", dir, e);
    let mut found = Vec::new();
    let entries = match fault::call!("quick-queue.dir.read", std::fs::read_dir(dir)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        found.extend(entry.map_err(failed)?.file_name().to_str().and_then(names::parse));
    }
    Ok(found)
}

fn add(span: &mut Option<Span>, page: u32) {
    let known = span.unwrap_or(Span { lowest: page, highest: page });
    *span = Some(Span { lowest: known.lowest.min(page), highest: known.highest.max(page) });
}

/// Whether a name is one of the other formats that share the name "queue".
fn is_foreign(name: &str) -> bool {
    [".cq4", ".cq4t"].iter().any(|suffix| name.ends_with(suffix))
}

/// The length of a page file; None if it is missing, or was never given one.
pub fn length_of(path: &Path) -> Result<Option<u64>> {
    let access = files::Access { write: false, create_mode: None };
    let Some(file) = files::open(path, access)? else { return Ok(None) };
    let found = fault::call!("quick-queue.page.stat", file.metadata());
    let length = found.map_err(|e| Error::io("cannot look at", path, e))?.len();
    Ok((length > 0).then_some(length))
}

fn bad_length(path: &Path, length: u64, expected: String) -> Error {
    Error::corrupt("a page file has no valid length", path, 0, length.to_string(), expected)
}
