//! How the messages of a queue are stored.

use std::sync::Arc;

use super::Queue;
use crate::chronicle::queue::bases::{Stored, base_in};
use crate::sealed::cipher::Place;
use crate::sealed::compressing::Compressing;
use crate::sealed::difference::Difference;
use crate::sealed::layers::Layers;
use crate::{Error, Result};

impl Queue {
    /// What compresses and decompresses its messages.
    #[inline]
    #[must_use]
    pub const fn compressing(&self) -> &Compressing {
        &self.opened.compressing
    }

    /// What becomes of its messages once their index is known; None where they are stored as given.
    #[inline]
    #[must_use]
    pub const fn layers(&self) -> Option<&Layers> {
        self.opened.layers.as_ref()
    }
}

impl Queue {
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
                let place = Place { cycle, index: of, is_metadata: false };
                let cipher = self.options().encryption.cipher();
                let plain = cipher.map_or(Ok(None), |cipher| cipher.open(place, stored))?;
                let stored = plain.as_deref().unwrap_or(stored);
                let unpacked = self.compressing().unpacked(stored, of)?;
                Ok(unpacked.or(plain))
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
