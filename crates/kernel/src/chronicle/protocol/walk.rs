//! Walking over the documents of a roll file, counting its messages.

use super::roll_file::{Known, Slot, View};
use crate::Result;

/// A cursor between two documents, which only moves forward.
pub struct Walk<'v> {
    view: &'v mut View,
    /// The next header, and the sequence of the next message.
    pub at: Known,
}

/// The result of stepping to the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// A message.
    Message(Known),
    /// No complete document: a waiting slot, or the end-of-file marker.
    End(Slot),
}

impl<'v> Walk<'v> {
    /// A walk from a known message, or from the start of the file.
    pub fn from(view: &'v mut View, message: Option<Known>) -> Self {
        Self { view, at: message.unwrap_or(Known { position: 0, sequence: 0 }) }
    }

    /// Steps over a document, if there is one; returns the slot.
    #[inline]
    pub fn step(&mut self) -> Result<Slot> {
        let slot = self.view.slot(self.at.position)?;
        if let Slot::Document(document) = slot {
            self.at.sequence += u64::from(!document.is_metadata);
            self.at.position = document.next;
        }
        Ok(slot)
    }

    /// Steps over the next message, and over the metadata before it.
    #[inline]
    pub fn next_message(&mut self) -> Result<Met> {
        loop {
            let at = self.at;
            match self.step()? {
                Slot::Document(document) if document.is_metadata => {}
                Slot::Document(_) => return Ok(Met::Message(at)),
                slot => return Ok(Met::End(slot)),
            }
        }
    }

    /// Steps over all documents; returns the slot after them.
    #[inline]
    pub fn to_end(&mut self) -> Result<Slot> {
        loop {
            match self.step()? {
                Slot::Document(_) => {}
                slot => return Ok(slot),
            }
        }
    }
}
