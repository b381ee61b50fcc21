//! Handling of messages that were deleted before a tailer read them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::chronicle::format::table::NO_INDEX;
use crate::error::Raised;
use crate::{Error, Result, warnings};

/// What to do about messages that were deleted unread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// Fail, and stay in place; after the error, continue with the first remaining message.
    Raise,
    /// Warn, and continue with the first remaining message.
    #[default]
    Warn,
    /// Continue with the first remaining message.
    Skip,
}

impl OnMissing {
    /// The variant with this name, as shown to users.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "raise" => Self::Raise,
            "warn" => Self::Warn,
            "skip" => Self::Skip,
            _ => return None,
        })
    }
}

/// How deleted messages are reported.
pub struct MissingCycles {
    /// What to do.
    on: OnMissing,
    /// The tailer's name; empty if it has none.
    tailer: String,
    /// The index of the loss that was raised and not skipped yet.
    raised: Arc<AtomicI64>,
}

impl Default for MissingCycles {
    fn default() -> Self {
        Self::new(OnMissing::default(), String::new())
    }
}

impl MissingCycles {
    /// The reports of a tailer; one without a name has an empty one.
    #[must_use]
    pub fn new(on: OnMissing, tailer: String) -> Self {
        Self { on, tailer, raised: Arc::new(AtomicI64::new(NO_INDEX)) }
    }

    /// Reports that messages from `expected` on were deleted; `first` is the first remaining index.
    #[cold]
    pub fn report(&self, path: &Path, expected: i64, first: Option<i64>) -> Result<()> {
        let named = !self.tailer.is_empty();
        let loss = Error::DataLoss {
            tailer: if named { self.tailer.clone() } else { "-".to_owned() },
            expected,
            first: first.map_or_else(|| "none".to_owned(), |first| format!("{first:#x}")),
            path: path.to_path_buf(),
            raised: Raised::new(&self.raised, expected),
        };
        match self.on {
            OnMissing::Raise if self.raised.swap(NO_INDEX, Ordering::Relaxed) == expected => {}
            OnMissing::Raise => return Err(loss),
            OnMissing::Warn => warnings::leave_loss(&loss),
            OnMissing::Skip => {}
        }
        Ok(())
    }
}
