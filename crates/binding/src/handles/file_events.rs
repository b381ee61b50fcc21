use std::ffi::OsString;
use std::sync::Arc;

use pyo3::prelude::*;
use quire_kernel::chronicle::protocol::file_events::FileEvents as Kernel;

#[doc = stub!("FileEvents")]
#[pyclass(module = "quire._native", frozen)]
pub struct FileEvents(pub Arc<Kernel>);

#[pymethods]
impl FileEvents {
    #[doc = stub!("FileEvents.take")]
    fn take(&self, py: Python<'_>) -> Option<Vec<(i32, OsString, bool)>> {
        let taken = py.detach(|| self.0.take())?;
        let events = taken.into_iter();
        Some(
            events
                .map(|event| (event.cycle, event.path.into_os_string(), event.is_acquired))
                .collect(),
        )
    }

    #[doc = stub!("FileEvents.end")]
    fn end(&self) {
        self.0.end();
    }
}
