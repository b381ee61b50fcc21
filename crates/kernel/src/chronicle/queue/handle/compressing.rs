//! How the messages of a queue are stored.

use std::fmt;
use std::sync::Arc;

use super::Queue;
use crate::chronicle::protocol::locate::{self, Located};
use crate::chronicle::protocol::roll_file::Slot;
use crate::chronicle::queue::bases::{Stored, base_in};
use crate::sealed::cipher::{self, Encryption, Place};
use crate::sealed::compressing::Compressing;
use crate::sealed::difference::Difference;
use crate::sealed::layers::Layers;
use crate::sealed::packed;
use crate::{Error, Result};

impl Queue {
    /// Compression and decompression of its messages.
    #[inline]
    #[must_use]
    pub const fn compressing(&self) -> &Compressing {
        &self.opened.compressing
    }

    /// Transformations of its messages that depend on their index; None if they are stored as
    /// given.
    #[inline]
    #[must_use]
    pub const fn layers(&self) -> Option<&Layers> {
        self.opened.layers.as_ref()
    }
}

impl Queue {
    /// The message at an index as readers get it; None if there is none.
    pub fn message_at(&self, index: i64) -> Result<Option<Vec<u8>>> {
        self.with_stored(index, |stored, place| {
            let opened = self.opened_message(stored, index).map_err(|error| match error {
                Error::Wire(fault) => Error::Wire(fault.with("file", place)),
                error => error,
            })?;
            Ok(opened.unwrap_or_else(|| stored.to_vec()))
        })
    }

    /// Calls `take` with the bytes stored at an index, and with their file and position for errors.
    fn with_stored<T>(
        &self,
        index: i64,
        take: impl FnOnce(&[u8], fmt::Arguments<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let (cycle, sequence) = self.roll().split(index)?;
        let Some(mut view) = self.view(cycle)? else { return Ok(None) };
        let Located::Found(position) = locate::locate(&mut view, sequence)? else {
            return Ok(None);
        };
        let Slot::Document(document) = view.slot(position)? else { return Ok(None) };
        let file = view.file().path().display();
        let place = format_args!("{file} position={position:#x}");
        take(view.payload(&document), place).map(Some)
    }

    /// The message at an index as it is stored; None if there is none.
    pub fn stored_at(&self, index: i64) -> Result<Option<Vec<u8>>> {
        self.with_stored(index, |stored, _| Ok(stored.to_vec()))
    }

    /// The message encoded by stored bytes; None if it is stored as given.
    #[cold]
    pub fn opened_message(&self, stored: &[u8], index: i64) -> Result<Option<Vec<u8>>> {
        let decrypted = self.decrypted(stored, index)?;
        let stored = decrypted.as_deref().unwrap_or(stored);
        if let Some(difference) = packed::difference(stored) {
            return self.restored(difference, index).map(Some);
        }
        let unpacked = self.compressing().unpacked(stored, index)?;
        Ok(unpacked.or(decrypted))
    }

    fn decrypted(&self, stored: &[u8], index: i64) -> Result<Option<Vec<u8>>> {
        let (cycle, _) = self.roll().split(index)?;
        let path = self.path().to_path_buf();
        match &self.options().encryption {
            Encryption::By(cipher) => {
                cipher.open(Place { cycle, index, is_metadata: false }, stored)
            }
            Encryption::WithoutKey => Err(Error::Encrypted { path }),
            Encryption::No if cipher::is_sealed(stored) => Err(Error::KeysMissing { path }),
            Encryption::No => Ok(None),
        }
    }

    /// The message that is stored as a difference.
    #[cold]
    pub fn restored(&self, difference: Difference<'_>, index: i64) -> Result<Vec<u8>> {
        let of = index.wrapping_sub(i64::from(difference.distance));
        let base = if let Some(base) = self.compressing().bases().find(of, difference.sum) {
            base
        } else {
            let (cycle, sequence) = self.roll().split(index)?;
            let Some(mut view) = self.view(cycle)? else {
                return Err(Error::gone("cannot open", &self.place_of_cycle(cycle)?));
            };
            let at = Stored { index, sequence, difference };
            let open = |stored: &[u8]| {
                let decrypted = self.decrypted(stored, of)?;
                let stored = decrypted.as_deref().unwrap_or(stored);
                let unpacked = self.compressing().unpacked(stored, of)?;
                Ok(unpacked.or(decrypted))
            };
            let base = Arc::new(base_in(&mut view, at, open)?);
            self.compressing().bases().keep(of, &base);
            base
        };
        difference.restored(&base).map_err(|fault| {
            let fault = fault.with("index", format_args!("{index:#x}"));
            Error::Wire(fault.with("base", format_args!("{of:#x}")))
        })
    }
}
