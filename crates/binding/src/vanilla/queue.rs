use std::ffi::OsString;
use std::iter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::vanilla::protocol::detect::Asked;
use quire_kernel::vanilla::protocol::rebuild::Rebuilt;
use quire_kernel::vanilla::{Consumption, VanillaOptions, VanillaQueue as Kernel, explain, zone};

use crate::arguments::integer;
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::handles::clock::QueueClock;
use crate::maintenance::{ExplainedRow, Rows, SnapshotRow, explained_row, rows, snapshot_row};
use crate::repr;

#[doc = stub!("VanillaQueue")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct VanillaQueue {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<QueueClock>,
}

#[pymethods]
impl VanillaQueue {
    #[new]
    #[pyo3(signature = (
        path, *, read_only = false, create = true, clock = None, roll_cycle = None,
        cycle_format = None, cycle_length_ms = None, cycle_time_zone = None,
        entries_per_cycle = None, tid_bits = None, index_block_bytes = None,
        data_block_bytes = None, synchronous = false, consumption = "topic", linger_ms = 10_000,
        file_mode = 0o600, allow_network = false
    ))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // a Python signature
    fn new(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        create: bool,
        clock: Option<Bound<'_, PyAny>>,
        roll_cycle: Option<String>,
        cycle_format: Option<String>,
        cycle_length_ms: Option<i64>,
        cycle_time_zone: Option<&str>,
        entries_per_cycle: Option<u64>,
        tid_bits: Option<u32>,
        index_block_bytes: Option<u64>,
        data_block_bytes: Option<u64>,
        synchronous: bool,
        consumption: &str,
        linger_ms: u64,
        file_mode: u32,
        allow_network: bool,
    ) -> PyResult<Self> {
        let clock = Arc::new(QueueClock::take(clock));
        let layout =
            Asked { tid_bits, index_block: index_block_bytes, data_block: data_block_bytes };
        let options = VanillaOptions {
            read_only,
            create,
            clock: clock.kernel(),
            roll_cycle,
            cycle_format,
            cycle_length_ms,
            entries_per_cycle,
            zone: cycle_time_zone.map(zone).transpose().map_err(to_py)?,
            layout,
            synchronous,
            consumption: consumption_of(consumption)?,
            linger: Duration::from_millis(linger_ms),
            file_mode,
            allow_network,
        };
        let opened = py.detach(|| Kernel::open(&path, options));
        Ok(Self { kernel: Arc::new(or_raise(py, opened)?), clock })
    }

    #[doc = stub!("VanillaQueue.read_only")]
    #[getter]
    fn read_only(&self) -> bool {
        self.kernel.options().read_only
    }

    #[doc = stub!("VanillaQueue.consumption")]
    #[getter]
    fn consumption(&self) -> &'static str {
        match self.kernel.options().consumption {
            Consumption::Topic => "topic",
            Consumption::Queue => "queue",
        }
    }

    #[doc = stub!("VanillaQueue.cycle_format")]
    #[getter]
    fn cycle_format(&self) -> &str {
        self.kernel.format().pattern()
    }

    #[doc = stub!("VanillaQueue.cycle_length_ms")]
    #[getter]
    fn cycle_length_ms(&self) -> i64 {
        self.kernel.format().length_ms()
    }

    #[doc = stub!("VanillaQueue.entries_per_cycle")]
    #[getter]
    fn entries_per_cycle(&self) -> u64 {
        1 << self.kernel.split().sequence_bits
    }

    #[doc = stub!("VanillaQueue.count_excerpts")]
    #[pyo3(signature = (from_index, to_index))]
    fn count_excerpts(
        &self,
        py: Python<'_>,
        from_index: &Bound<'_, PyAny>,
        to_index: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (from, to): (i64, i64) =
            (integer("from_index", from_index)?, integer("to_index", to_index)?);
        self.ask(py, |kernel| kernel.count_between(from.min(to), from.max(to)))
    }

    #[doc = stub!("VanillaQueue.current_cycle")]
    #[getter]
    fn current_cycle(&self, py: Python<'_>) -> PyResult<i32> {
        let now_ms = self.clock.now_ms(py)?;
        self.kernel.cycle_at(now_ms).map_err(to_py)
    }

    #[doc = stub!("VanillaQueue.cycle_at")]
    #[pyo3(signature = (time_ms))]
    fn cycle_at(&self, time_ms: &Bound<'_, PyAny>) -> PyResult<i32> {
        self.kernel.cycle_at(Some(integer("time_ms", time_ms)?)).map_err(to_py)
    }

    #[doc = stub!("VanillaQueue.cycle_start_ms")]
    #[pyo3(signature = (cycle))]
    fn cycle_start_ms(&self, cycle: &Bound<'_, PyAny>) -> PyResult<i64> {
        Ok(self.kernel.format().start_ms(integer("cycle", cycle)?))
    }

    #[doc = stub!("VanillaQueue.directory_for_cycle")]
    #[pyo3(signature = (cycle))]
    fn directory_for_cycle(&self, cycle: &Bound<'_, PyAny>) -> PyResult<OsString> {
        let cycle = integer("cycle", cycle)?;
        self.kernel.directory_of(cycle).map(PathBuf::into_os_string).map_err(to_py)
    }

    #[pyo3(name = "_named_positions")]
    fn named_positions(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<i64>)>> {
        self.ask(py, Kernel::named_positions)
    }

    #[pyo3(name = "_explain", signature = (index, /))]
    fn explain(&self, py: Python<'_>, index: i64) -> PyResult<Option<ExplainedRow>> {
        self.ask(py, |queue| explain::explain(queue, index)).map(explained_row)
    }

    #[pyo3(name = "_end_of_cycle", signature = (cycle))]
    fn end_of_cycle(&self, py: Python<'_>, cycle: i32) -> PyResult<u64> {
        self.ask(py, |queue| queue.count_in(cycle))
    }

    #[pyo3(name = "_rebuild_index")]
    #[allow(clippy::type_complexity)] // a row of the report, of which Python makes an object
    fn rebuild_index(&self, py: Python<'_>) -> PyResult<Vec<(i32, u64, u64, u64, bool)>> {
        let report = detached(py, |may_wait| {
            self.kernel.check_open("queue")?;
            self.kernel.rebuild_index(may_wait)
        });
        let report = or_raise(py, report)?;
        let row = |(cycle, it): (i32, Rebuilt)| {
            (cycle, it.messages, it.recovered, it.dropped, it.is_moved)
        };
        Ok(report.into_iter().map(row).collect())
    }

    #[pyo3(name = "_verify")]
    fn verify(&self, py: Python<'_>) -> PyResult<Rows> {
        self.ask(py, Kernel::verify).map(rows)
    }

    #[pyo3(name = "_snapshot")]
    fn snapshot(&self, py: Python<'_>) -> PyResult<SnapshotRow> {
        self.ask(py, Kernel::snapshot).map(snapshot_row)
    }

    #[doc = stub!("VanillaQueue.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.kernel.close(may_wait));
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().kernel;
        let format = format!("cycle_format={}", kernel.format().pattern());
        let read_only = kernel.options().read_only.then(|| "read_only".to_owned());
        let details = iter::once(format).chain(read_only);
        repr::raw_handle(slf, kernel.path(), details, kernel.is_closed())
    }
}

path_and_closed!(VanillaQueue, |it| it.kernel.path(), |it| it.kernel.is_closed());

questions! {
    impl VanillaQueue {
        fn first_index() -> Option<i64>;
        fn last_index() -> Option<i64>;
        fn entry_count() -> u64;
        fn cycles() -> Vec<i32>;
    }
}

context_manager!(VanillaQueue);

fn consumption_of(name: &str) -> PyResult<Consumption> {
    match name {
        "topic" => Ok(Consumption::Topic),
        "queue" => Ok(Consumption::Queue),
        _ => Err(PyValueError::new_err(format!(
            "invalid consumption={name:?}: expected 'topic' or 'queue'"
        ))),
    }
}
