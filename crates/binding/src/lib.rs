//! Python's view of the kernel: types and errors across, the interpreter detached, nothing else.
// PyO3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod appender;
mod arguments;
mod buffer;
mod calls;
mod clock;
mod columns;
mod dump;
mod error;
mod excerpt;
#[cfg(feature = "fault-points")]
mod fault;
mod payload;
mod queue;
mod read_document;
mod roll_cycle;
mod rows;
mod scan;
mod shown;
mod spin;
mod tailer;
mod text;
mod wire;
mod write_document;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_kernel::fork;

/// Waits until no other thread is in the middle of what a child would find half done. Attached: the
/// threads it waits for are not, and attaching again might have to wait for one that waits for it.
#[pyfunction]
fn before_fork() {
    fork::before();
}

/// Lets the other threads go on.
#[pyfunction]
fn after_fork_in_parent() {
    fork::after_in_parent();
}

/// Marks every handle of this process as forked.
#[pyfunction]
fn after_fork_in_child() {
    fork::after_in_child();
}

/// A named value, as it stands in a message.
#[pyfunction]
#[pyo3(signature = (name, value, /))]
fn entry_bytes<'py>(
    py: Python<'py>,
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    wire::values::put_entry(&mut out, name, value)?;
    Ok(PyBytes::new(py, &out))
}

/// The native half of `quire`. Private: import from `quire`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::appender::Appender;
    #[pymodule_export]
    use super::buffer::Buffer;
    #[pymodule_export]
    use super::calls::history::MessageHistory;
    #[pymodule_export]
    use super::calls::method::Method;
    #[pymodule_export]
    use super::calls::method_reader::MethodReader;
    #[pymodule_export]
    use super::calls::method_writer::{Call, Chain, MethodWriter};
    #[pymodule_export]
    use super::clock::ManualClock;
    #[pymodule_export]
    use super::columns::{Plan, Seen, kind_parts};
    #[pymodule_export]
    use super::dump::Dump;
    #[pymodule_export]
    use super::excerpt::Excerpt;
    #[pymodule_export]
    use super::queue::Queue;
    #[pymodule_export]
    use super::read_document::ReadDocument;
    #[pymodule_export]
    use super::roll_cycle::RollCycle;
    #[pymodule_export]
    use super::rows::Encoder;
    #[pymodule_export]
    use super::tailer::{Payloads, Tailer};
    #[pymodule_export]
    use super::text::{parse_json, parse_yaml, to_json, to_yaml};
    #[pymodule_export]
    use super::wire::codec::Codec;
    #[pymodule_export]
    use super::wire::kind::Kind;
    #[pymodule_export]
    use super::wire::wire_in::{RawIn, WireIn};
    #[pymodule_export]
    use super::wire::wire_out::{RawOut, WireOut};
    #[pymodule_export]
    use super::write_document::WriteDocument;

    #[pymodule_export]
    use super::{after_fork_in_child, after_fork_in_parent, before_fork, entry_bytes};

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        super::error::watch_for_signals();
        #[cfg(feature = "fault-points")]
        super::fault::add_to(m)?;
        m.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        m.add("BUILD_PROFILE", if cfg!(debug_assertions) { "debug" } else { "release" })
    }
}
