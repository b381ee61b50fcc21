//! The metrics of a queue: counted by its own handles, and by other processes.

use std::path::Path;
use std::sync::OnceLock;

use super::options::Options;
use crate::Result;
use crate::metrics::Metrics;

/// The metrics of a queue: its own, or those of other processes.
pub struct Counting {
    own: Option<Metrics>,
    /// Metrics of other processes, if this queue does not count itself.
    watched: OnceLock<Metrics>,
}

impl Counting {
    /// Starts counting if the options ask for it; a read-only queue does not, as it changes no
    /// file.
    pub fn begin(directory: &Path, options: &Options) -> Result<Self> {
        let counts = options.metrics && !options.read_only;
        let own = counts.then(|| Metrics::open(directory, options.file_mode)).transpose()?;
        Ok(Self { own, watched: OnceLock::new() })
    }

    /// Ends the counting.
    pub fn close(&self) {
        self.own.iter().chain(self.watched.get()).for_each(Metrics::close);
    }

    /// Counts a roll file that was created.
    pub fn count_file(&self, created: bool) {
        if let (Some(metrics), true) = (&self.own, created) {
            metrics.rolled();
        }
    }

    /// The metrics that this queue counts in, if requested.
    #[inline]
    pub const fn own(&self) -> Option<&Metrics> {
        self.own.as_ref()
    }

    /// The metrics of the queue of a directory, counted by any process; None if none does.
    pub fn any(&self, directory: &Path) -> Result<Option<&Metrics>> {
        if let Some(metrics) = self.own().or_else(|| self.watched.get()) {
            return Ok(Some(metrics));
        }
        let found = Metrics::open_existing(directory, false)?;
        Ok(found.map(|found| self.watched.get_or_init(|| found)))
    }
}
