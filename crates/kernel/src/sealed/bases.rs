//! A cache of the most recently read bases of differences, for the messages after them.

use std::sync::{Arc, Mutex, PoisonError};

use super::difference::Base;

/// The most bases that a queue keeps, and how many bytes they may have together.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 4 << 20;

/// The most recently read bases, by index.
#[derive(Debug, Default)]
pub struct Bases(Mutex<Vec<(i64, Arc<Base>)>>);

impl Bases {
    /// The base at this index, if it has this CRC-32.
    #[must_use]
    pub fn find(&self, index: i64, sum: u32) -> Option<Arc<Base>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().rev().find(|(of, base)| *of == index && base.sum() == sum);
        found.map(|(_, base)| Arc::clone(base))
    }

    pub fn keep(&self, index: i64, base: &Arc<Base>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, _)| *of != index);
        kept.push((index, Arc::clone(base)));
        let mut bytes: usize = kept.iter().map(|(_, base)| base.bytes().len()).sum();
        while kept.len() > KEPT || bytes > KEPT_BYTES {
            bytes -= kept.remove(0).1.bytes().len();
        }
    }
}
