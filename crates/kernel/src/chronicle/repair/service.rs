//! The service whose output is about to lose messages.

use crate::chronicle::queue::handle::Queue;
use crate::os::own_directory::OwnDirectory;
use crate::{Error, Result};

/// Keeps services from writing to the queue until the returned directory is dropped.
///
/// A service reads its output only when it starts. If it kept running, its next output would imply
/// that all earlier ones exist.
///
/// # Errors
/// A service is running.
pub fn keep_out(queue: &Queue) -> Result<OwnDirectory> {
    let directory = queue.own_directory()?;
    if directory.try_lock()? {
        return Ok(directory);
    }
    let what = "a service or a conversion writes to this queue, and would not write messages again \
                that are cut off; stop it first:";
    Err(Error::WriterInUse { what: what.to_owned(), path: queue.path().to_path_buf() })
}
