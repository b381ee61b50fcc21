use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_kernel::chronicle::queue::handle::Queue as Kernel;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::chronicle::read::buffer::ReadBuffer;
use quire_kernel::chronicle::read::stored_position;
use quire_kernel::chronicle::{dump, explain, format};
use quire_kernel::metrics::{Counter, Latency, Values};
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;

use quire_kernel::Error;
use quire_kernel::ring::format::DEFAULT_CAPACITY;
use quire_kernel::ring::handle::{OnFull, Ring};

use super::clock::QueueClock;
use super::file_events::FileEvents;
use super::queue_options::{self, Buffered, check_buffered, encryption, mode, promise, when_full};
use super::roll_cycle::{RollCycle, named_or_given};
use crate::arguments::{integer, text};
use crate::cipher::Cipher;
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::maintenance::{ExplainedRow, explained_row};
use crate::repr;

/// When counting began and retention last ran, the counters, and for each latency the sum, the
/// highest value and the buckets.
type Counted =
    ((u64, u64), Vec<(&'static str, u64)>, Vec<(&'static str, (u64, u64, Vec<(u64, u64, u64)>))>);

#[doc = stub!("Queue")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct Queue {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<QueueClock>,
    /// The ring that appends or reads go through, or one with messages that could not be appended
    /// yet.
    ring: Option<Arc<Ring>>,
    /// What goes through the ring.
    buffered: Buffered,
}

#[pymethods]
impl Queue {
    #[new]
    #[pyo3(signature = (
        path, *, roll_cycle = None, read_only = false, create = true, clock = None,
        epoch_ms = None, roll_time = None, roll_time_zone = None, index_count = None,
        index_spacing = None, wire_type = None, block_bytes = None, source_id = 0,
        timeout_ms = 10_000, force_unlock = "dead", double_buffer = false,
        eof_grace_ms = Some(1_000), file_mode = 0o600, allow_network = false,
        pretouch = true, low_space_percent = 5, low_space_bytes = None, durability = "process", group_commit_us = None,
        metrics = false, time_index = false, append_checksums = false, max_clock_ahead_ms = None, file_events = false,
        read_after_replica_acknowledged = false,
        read_buffer_mode = None, write_buffer_mode = None, buffer_capacity_bytes = None,
        on_full = "block", cipher = None, without_key = false, compression = None
    ))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // a Python signature
    fn new(
        py: Python<'_>,
        path: PathBuf,
        roll_cycle: Option<Bound<'_, PyAny>>,
        read_only: bool,
        create: bool,
        clock: Option<Bound<'_, PyAny>>,
        epoch_ms: Option<i64>,
        roll_time: Option<String>,
        roll_time_zone: Option<String>,
        index_count: Option<u32>,
        index_spacing: Option<u32>,
        wire_type: Option<String>,
        block_bytes: Option<u64>,
        source_id: i32,
        timeout_ms: u64,
        force_unlock: &str,
        double_buffer: bool,
        eof_grace_ms: Option<u64>,
        file_mode: u32,
        allow_network: bool,
        pretouch: bool,
        low_space_percent: u8,
        low_space_bytes: Option<u64>,
        durability: &str,
        group_commit_us: Option<u64>,
        metrics: bool,
        time_index: bool,
        append_checksums: bool,
        max_clock_ahead_ms: Option<u64>,
        file_events: bool,
        read_after_replica_acknowledged: bool,
        read_buffer_mode: Option<&str>,
        write_buffer_mode: Option<&str>,
        buffer_capacity_bytes: Option<u64>,
        on_full: &str,
        cipher: Option<PyRef<'_, Cipher>>,
        without_key: bool,
        compression: Option<&str>,
    ) -> PyResult<Self> {
        if source_id < 0 {
            let what = format!("a source id is at least 1, or 0 for none: source_id={source_id}");
            return Err(PyValueError::new_err(what));
        }
        let clock = Arc::new(QueueClock::take(clock));
        let durability = promise(durability)?;
        let options = Options {
            roll_cycle: roll_cycle.as_ref().map(named_or_given).transpose()?,
            read_only,
            create,
            clock: clock.kernel(),
            epoch_ms,
            roll_time,
            roll_time_zone,
            index_count,
            index_spacing,
            wire_type,
            block_bytes: block_bytes.unwrap_or(format::blocks::DEFAULT_BLOCK),
            source_id,
            timeout: Duration::from_millis(timeout_ms),
            force_unlock: mode(force_unlock)?,
            double_buffer,
            eof_grace: eof_grace_ms.map(Duration::from_millis),
            file_mode,
            allow_network,
            pretouch,
            low_space_percent: percent(low_space_percent)?,
            low_space_bytes,
            durability,
            group_commit: group_commit_us.map_or(durability.group_commit(), Duration::from_micros),
            metrics,
            time_index,
            append_checksums,
            max_clock_ahead_ms,
            file_events,
            read_after_replica_acknowledged,
            encryption: encryption(cipher.as_deref(), without_key),
            compression: compression.map(queue_options::compression).transpose()?,
        };
        let on_full = when_full(on_full)?;
        let is_async = |mode: Option<&str>| mode == Some("async");
        let buffered =
            Buffered { reads: is_async(read_buffer_mode), writes: is_async(write_buffer_mode) };
        let is_encrypted = cipher.is_some() || without_key;
        check_buffered(buffered, durability, &clock, is_encrypted)?;
        let capacity = buffer_capacity_bytes.unwrap_or(DEFAULT_CAPACITY);
        let opened = detached(py, |may_wait| {
            let kernel = Kernel::open(&path, options, may_wait)?;
            let ring = open_ring(&kernel, buffered, capacity, on_full, may_wait)?;
            Ok((kernel, ring))
        });
        let (kernel, ring) = or_raise(py, opened)?;
        Ok(Self { kernel, clock, ring, buffered })
    }

    #[doc = stub!("Queue.ring")]
    #[getter]
    fn ring(&self) -> Option<super::ring::Ring> {
        let ring = self.ring.clone().filter(|_| self.buffered.reads || self.buffered.writes);
        ring.map(super::ring::Ring)
    }

    #[getter(_file_events)]
    fn file_events(&self) -> Option<FileEvents> {
        self.kernel.file_events().cloned().map(FileEvents)
    }

    #[doc = stub!("Queue.roll_cycle")]
    #[getter]
    fn roll_cycle(&self) -> RollCycle {
        RollCycle(self.kernel.roll().clone())
    }

    #[doc = stub!("Queue.epoch_ms")]
    #[getter]
    fn epoch_ms(&self) -> i64 {
        self.kernel.epoch_ms()
    }

    #[doc = stub!("Queue.read_only")]
    #[getter]
    fn read_only(&self) -> bool {
        self.kernel.is_read_only()
    }

    #[doc = stub!("Queue.wire_type")]
    #[getter]
    fn wire_type(&self) -> &str {
        self.kernel.wire_type()
    }

    #[doc = stub!("Queue.source_id")]
    #[getter]
    fn source_id(&self) -> i32 {
        self.kernel.source_id()
    }

    #[pyo3(name = "_note_acknowledged", signature = (index, /))]
    fn note_acknowledged(&self, py: Python<'_>, index: i64) -> PyResult<()> {
        self.ask_waiting(py, |kernel, signals| kernel.note_acknowledged(index, signals))
    }

    #[pyo3(name = "_wake_sleepers")]
    fn wake_sleepers(&self, py: Python<'_>) {
        detached(py, |_| self.kernel.wake_sleepers());
    }

    #[getter(_index_shape)]
    fn index_shape(&self) -> (u32, u32) {
        let shape = self.kernel.index_shape();
        (shape.index_count, shape.index_spacing)
    }

    #[doc = stub!("Queue.block_bytes")]
    #[getter]
    fn block_bytes(&self) -> u64 {
        self.kernel.block()
    }

    #[doc = stub!("Queue.count_excerpts")]
    #[pyo3(signature = (from_index, to_index))]
    fn count_excerpts(
        &self,
        py: Python<'_>,
        from_index: &Bound<'_, PyAny>,
        to_index: &Bound<'_, PyAny>,
    ) -> PyResult<i64> {
        let from_index = integer("from_index", from_index)?;
        let to_index = integer("to_index", to_index)?;
        self.ask(py, |queue| queue.count_excerpts(from_index, to_index))
    }

    #[doc = stub!("Queue.current_cycle")]
    #[getter]
    fn current_cycle(&self, py: Python<'_>) -> PyResult<i32> {
        let now_ms = match self.clock.now_ms(py)? {
            Some(now_ms) => now_ms,
            None => self.kernel.options().clock.now_ms(),
        };
        self.kernel.schedule().cycle_at(now_ms).map_err(to_py)
    }

    #[doc = stub!("Queue.cycle_at")]
    #[pyo3(signature = (time_ms))]
    fn cycle_at(&self, time_ms: &Bound<'_, PyAny>) -> PyResult<i32> {
        self.kernel.schedule().cycle_at(integer("time_ms", time_ms)?).map_err(to_py)
    }

    #[doc = stub!("Queue.cycle_start_ms")]
    #[pyo3(signature = (cycle))]
    fn cycle_start_ms(&self, cycle: &Bound<'_, PyAny>) -> PyResult<i64> {
        Ok(self.kernel.schedule().span_of(integer("cycle", cycle)?).start)
    }

    #[doc = stub!("Queue.roll_time_zone")]
    #[getter]
    fn roll_time_zone(&self) -> &str {
        self.kernel.schedule().zone_name()
    }

    #[doc = stub!("Queue.current_file")]
    #[getter]
    fn current_file(&self, py: Python<'_>) -> PyResult<OsString> {
        self.file_of(self.current_cycle(py)?)
    }

    #[doc = stub!("Queue.file_for_cycle")]
    #[pyo3(signature = (cycle))]
    fn file_for_cycle(&self, cycle: &Bound<'_, PyAny>) -> PyResult<OsString> {
        self.file_of(integer("cycle", cycle)?)
    }

    #[doc = stub!("Queue.refresh")]
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.ask_waiting(py, Kernel::refresh)
    }

    #[pyo3(name = "_messages_before", signature = (cycle, time_ms, /))]
    fn messages_before(&self, py: Python<'_>, cycle: i32, time_ms: i64) -> PyResult<Option<u64>> {
        self.ask(py, |queue| queue.messages_before(cycle, time_ms))
    }

    #[pyo3(name = "_append_times_ms", signature = (indexes, /))]
    fn append_times(&self, py: Python<'_>, indexes: Vec<i64>) -> PyResult<Vec<Option<u64>>> {
        self.ask(py, |queue| queue.append_times(&indexes))
    }

    #[pyo3(name = "_announce_removal", signature = (first_left, /))]
    fn announce_removal(&self, py: Python<'_>, first_left: i32) -> PyResult<()> {
        self.ask(py, |queue| queue.announce_removal(first_left))
    }

    #[pyo3(name = "_announce_compression", signature = (cycle, /))]
    fn announce_compression(&self, py: Python<'_>, cycle: i32) -> PyResult<()> {
        self.ask_waiting(py, |queue, signals| queue.announce_compression(cycle, signals))
    }

    #[doc = stub!("Queue.dump")]
    fn dump(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, dump::dump)
    }

    #[doc = stub!("Queue.table_value")]
    #[pyo3(signature = (key))]
    fn table_value(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        let key = text("key", key)?;
        self.ask(py, |queue| queue.table_value(key))
    }

    #[doc = stub!("Queue.table_entries")]
    fn table_entries(&self, py: Python<'_>) -> PyResult<Vec<(String, i64)>> {
        self.ask(py, Kernel::table_entries)
    }

    #[pyo3(name = "_table_used")]
    fn table_used(&self, py: Python<'_>) -> PyResult<Option<(u64, bool)>> {
        self.ask(py, |queue| Ok(queue.table_used()))
    }

    #[pyo3(name = "_table_identity")]
    fn table_identity(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        self.ask(py, |queue| Ok(queue.table_identity()))
    }

    #[doc = stub!("Queue.named_tailers")]
    fn named_tailers(&self, py: Python<'_>) -> PyResult<Vec<(String, i64)>> {
        self.ask(py, Kernel::named_tailers)
    }

    #[pyo3(name = "_metrics")]
    fn metrics(&self, py: Python<'_>) -> PyResult<Option<Counted>> {
        self.ask(py, |queue| {
            Ok(queue.any_metrics()?.map(|metrics| {
                let counters = Counter::ALL.map(|it| (it.name(), metrics.counted(it)));
                let latencies = Latency::ALL.map(|it| {
                    let Values { sum, highest, buckets } = metrics.values(it);
                    (it.name(), (sum, highest, buckets))
                });
                (
                    (metrics.made_ms(), metrics.last_prune_ms()),
                    counters.to_vec(),
                    latencies.to_vec(),
                )
            }))
        })
    }

    #[pyo3(name = "_count_shared", signature = (counter, count, /))]
    fn count_shared(&self, counter: &str, count: u64) -> PyResult<()> {
        let Some(counter) = Counter::ALL.into_iter().find(|it| it.name() == counter) else {
            return Err(PyValueError::new_err(format!("no such counter: {counter}")));
        };
        if let Some(metrics) = self.kernel.metrics() {
            metrics.shared(counter, count);
        }
        Ok(())
    }

    #[doc = stub!("Queue.delete_tailer")]
    #[pyo3(signature = (name))]
    fn delete_tailer(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let name = text("name", name)?;
        self.ask_waiting(py, |queue, signals| stored_position::delete(queue, name, signals))
    }

    #[doc = stub!("Queue.rename_tailer")]
    #[pyo3(signature = (name, new_name))]
    fn rename_tailer(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        new_name: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (name, new_name) = (text("name", name)?, text("new_name", new_name)?);
        self.ask_waiting(py, |queue, signals| {
            stored_position::rename(queue, name, new_name, signals)
        })
    }

    #[pyo3(name = "_position_of", signature = (index, /))]
    fn position_of(&self, py: Python<'_>, index: i64) -> PyResult<Option<u64>> {
        self.ask(py, |queue| queue.position_of(index))
    }

    #[pyo3(name = "_stored_at", signature = (index, /))]
    fn stored_at<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = self.ask(py, |queue| queue.stored_at(index))?;
        Ok(found.map(|stored| PyBytes::new(py, &stored)))
    }

    #[pyo3(name = "_keyed_hash", signature = (content, /))]
    fn keyed_hash(&self, content: &[u8]) -> Option<u64> {
        self.kernel.options().encryption.cipher().and_then(|it| it.keyed_hash(content))
    }

    #[pyo3(name = "_explain", signature = (index, /))]
    fn explain(&self, py: Python<'_>, index: i64) -> PyResult<Option<ExplainedRow>> {
        self.ask(py, |queue| explain::explain(queue, index)).map(explained_row)
    }

    #[doc = stub!("Queue.lock_holder")]
    #[pyo3(signature = (key))]
    fn lock_holder(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<(u32, bool)>> {
        let key = text("key", key)?;
        self.ask(py, |queue| queue.lock_holder(key))
    }

    #[pyo3(name = "_lock_held_since_ms", signature = (pid))]
    fn lock_held_since_ms(&self, py: Python<'_>, pid: u32) -> PyResult<Option<i64>> {
        self.ask(py, |queue| Ok(queue.lock_held_since_ms(pid)))
    }

    #[pyo3(name = "_unlock", signature = (key, *, force))]
    fn unlock(&self, py: Python<'_>, key: &str, force: bool) -> PyResult<Option<(u32, bool)>> {
        self.ask(py, |queue| queue.unlock(key, force))
    }

    #[doc = stub!("Queue.end_of_cycle")]
    #[pyo3(signature = (cycle))]
    fn end_of_cycle(
        &self,
        py: Python<'_>,
        cycle: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(u64, u64, bool)>> {
        let cycle = integer("cycle", cycle)?;
        self.ask(py, |queue| queue.end_of_cycle(cycle))
    }

    #[pyo3(name = "_write_position", signature = (cycle))]
    fn write_position(&self, py: Python<'_>, cycle: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let cycle = integer("cycle", cycle)?;
        self.ask(py, |queue| queue.write_position(cycle))
    }

    #[pyo3(name = "_check_end", signature = (index))]
    fn check_end(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
        let index = integer("index", index)?;
        self.ask(py, |queue| queue.check_end(index))
    }

    #[pyo3(name = "_index_spacing", signature = (cycle))]
    fn index_spacing(&self, py: Python<'_>, cycle: &Bound<'_, PyAny>) -> PyResult<u32> {
        let cycle = integer("cycle", cycle)?;
        self.ask(py, |queue| queue.index_spacing_of(cycle))
    }

    #[doc = stub!("Queue.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| {
            if let Some(ring) = &self.ring {
                ring.close(may_wait);
            }
            self.kernel.close(may_wait);
        });
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().kernel;
        let mut parts = vec![repr::path(slf.py(), kernel.path())];
        parts.push(format!("roll_cycle={}", kernel.roll().name));
        if kernel.is_read_only() {
            parts.push("read_only".to_owned());
        }
        repr::add_end(&mut parts, kernel, kernel.is_closed());
        repr::handle(&slf.get_type(), &parts)
    }
}

path_and_closed!(Queue, |it| it.kernel.path(), |it| it.kernel.is_closed());

questions! {
    impl Queue {
        fn first_index() -> Option<i64>;
        fn last_index() -> Option<i64>;
        fn last_index_synced() -> Option<i64>;
        fn last_acknowledged_index() -> Option<i64>;
        fn entry_count() -> u64;
        fn cycles() -> Vec<i32>;
    }
}

context_manager!(Queue);

impl Queue {
    /// Like `ask`, for questions that may wait.
    fn ask_waiting<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Kernel, Signals<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let kernel = &self.kernel;
        let answer = detached(py, |may_wait| {
            kernel.check_open("queue")?;
            question(kernel, Signals::Handled(may_wait))
        });
        or_raise(py, answer)
    }

    fn file_of(&self, cycle: i32) -> PyResult<OsString> {
        self.kernel.place_of_cycle(cycle).map(PathBuf::into_os_string).map_err(to_py)
    }

    /// The ring that appends go through, if they are asynchronous.
    pub fn write_buffer(&self) -> Option<Arc<Ring>> {
        self.ring.clone().filter(|_| self.buffered.writes)
    }

    /// The ring that tailers read through, if any.
    pub fn read_buffer(&self) -> Option<Arc<dyn ReadBuffer>> {
        let ring = self.ring.clone().filter(|_| self.buffered.reads);
        ring.map(|ring| ring as Arc<dyn ReadBuffer>)
    }
}

fn percent(low_space_percent: u8) -> PyResult<u8> {
    if low_space_percent <= 100 {
        return Ok(low_space_percent);
    }
    let what = format!("not a percentage: low_space_percent={low_space_percent} limit=100");
    Err(PyValueError::new_err(what))
}

/// Opens the ring of a queue that reads or writes through it. Messages left by earlier asynchronous
/// appends are appended first in any case.
fn open_ring(
    queue: &Arc<Kernel>,
    buffered: Buffered,
    capacity: u64,
    on_full: OnFull,
    may_wait: &mut Detached,
) -> Result<Option<Arc<Ring>>, Error> {
    if queue.is_read_only() {
        return if buffered.reads { Err(not_drainable(queue)) } else { Ok(None) };
    }
    if buffered.writes {
        let ring = Ring::open(queue, capacity, on_full, may_wait)?;
        ring.start()?;
        return Ok(Some(ring));
    }
    if buffered.reads {
        return Ring::open_to_read(queue, capacity, may_wait).map(Some);
    }
    if queue.path().is_dir() { Ring::drain_left_over(queue, may_wait) } else { Ok(None) }
}

fn not_drainable(queue: &Kernel) -> Error {
    let what = "read_buffer_mode='async', which appends what is in the ring,";
    Error::ReadOnly { what, path: queue.path().to_path_buf() }
}
