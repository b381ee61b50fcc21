//! A document that its tailer has already moved past, so it can be decoded without the tailer's
//! lock.

use pyo3::prelude::*;
use quire_kernel::Result;
use quire_kernel::chronicle::read::tailer::{Ask, DocumentPlace, Found, How, Scan, Tailer, What};

use super::scan;
use crate::document::Document;
use crate::error::to_py;

/// Messages up to this many bytes are copied, which is faster than keeping their file mapped.
const SHORT: usize = 128;

/// Room for a document.
pub struct Taken {
    short: [u8; SHORT],
    held: Held,
}

enum Held {
    Nothing,
    /// A message, and its length in `short`.
    Short(DocumentPlace, usize),
    Document(Document),
}

impl Taken {
    /// No document.
    #[inline]
    pub const fn nothing() -> Self {
        Self { short: [0; SHORT], held: Held::Nothing }
    }

    /// Takes the next document of a tailer; false if there is none. Long work is done detached.
    #[inline]
    pub fn next(
        &mut self,
        py: Python<'_>,
        tailer: &Tailer,
        include_metadata: bool,
    ) -> PyResult<bool> {
        let next = What::document(Ask::First, include_metadata);
        let tried = tailer.step(next, How::Try, |found| self.keep(&found, include_metadata));
        match tried.map_err(to_py)? {
            Scan::Found(()) => Ok(true),
            Scan::Nothing => Ok(false),
            _ => {
                let taken = scan::take(py, tailer, next)?.map_err(to_py)?;
                Ok(self.hold(taken.map(Document::InPlace)))
            }
        }
    }

    /// Like [`Self::next`], for messages of a batch, and with the kernel's error separate from a
    /// signal handler's exception.
    pub fn next_of_batch(
        &mut self,
        py: Python<'_>,
        tailer: &Tailer,
        ask: Ask,
    ) -> PyResult<Result<bool>> {
        let next = What::message(ask);
        Ok(match tailer.step(next, How::Try, |found| self.keep(&found, false)) {
            Ok(Scan::Found(())) => Ok(true),
            Ok(Scan::Nothing) => Ok(false),
            Ok(_) => {
                let taken = scan::take(py, tailer, next)?;
                taken.map(|taken| self.hold(taken.map(Document::InPlace)))
            }
            Err(error) => Err(error),
        })
    }

    /// Holds a message, copied if short, or another document.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
    #[inline(always)]
    fn keep(&mut self, found: &Found<'_>, include_metadata: bool) -> Result<()> {
        self.held = match found.copy_whole(&mut self.short) {
            Some(length) if !include_metadata => Held::Short(found.place(), length),
            _ => Held::Document(Document::InPlace(found.open()?)),
        };
        Ok(())
    }

    /// Holds a document, if there is one.
    pub fn hold(&mut self, document: Option<Document>) -> bool {
        let is_there = document.is_some();
        self.held = document.map_or(Held::Nothing, Held::Document);
        is_there
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match &self.held {
            Held::Nothing => &[],
            Held::Short(_, length) => &self.short[..*length],
            Held::Document(document) => document.payload(),
        }
    }

    /// What a tailer of topics skipped before the message: its history and its key.
    #[inline]
    pub fn before(&self) -> &[u8] {
        match &self.held {
            Held::Nothing | Held::Short(..) => &[],
            Held::Document(document) => document.before(),
        }
    }

    /// Its place in a file.
    #[inline]
    pub const fn place(&self) -> Option<&DocumentPlace> {
        match &self.held {
            Held::Short(place, _) => Some(place),
            Held::Document(Document::InPlace(open)) => Some(open.place()),
            Held::Nothing | Held::Document(Document::Received(_)) => None,
        }
    }

    /// The index of the message, or of the one after metadata.
    #[inline]
    pub const fn index(&self) -> i64 {
        match &self.held {
            Held::Nothing => 0,
            Held::Short(place, _) => place.index,
            Held::Document(document) => document.index(),
        }
    }

    /// It is metadata.
    #[inline]
    pub const fn is_metadata(&self) -> bool {
        matches!(&self.held, Held::Document(document) if document.is_metadata())
    }

    /// The document, to be kept; None if there is none.
    #[cold]
    pub fn into_document(self) -> Option<Document> {
        match self.held {
            Held::Nothing => None,
            Held::Short(place, length) => {
                Some(Document::InPlace(place.with_copy(&self.short[..length])))
            }
            Held::Document(document) => Some(document),
        }
    }
}
