"""Quire: encrypted and compressed messages, compressed cycles, seals; libraries that compress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import quire
from bench.adapters.quire import version
from bench.adapters.quire_life import Detailed
from bench.task import BLOCK_BYTES, DISTINCT, START_MS, Missing, Outcome, Stopwatch, Task
from quire.maintenance import compress_dictionary, seal

__all__ = ["NAME", "NAMES", "run", "version"]

NAME = "Quire, sealed"
_KEY = bytes(range(32))
_DAY_MS = 86_400_000
_CYCLES = 5
_DICTIONARY = "zstd_dictionary"
_WIRE_TYPES = {"delta": "DELTA_BINARY", "default_zero": "DEFAULT_ZERO_BINARY"}
_METHODS = ("zstd", _DICTIONARY, "lz4", "snappy", "gzip", "lzw")
_LIBRARIES: dict[str, Literal["zstd", "snappy", "gzip", "lz4_raw"]] = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4_raw",
}
NAMES = {
    "append@plain": "plain",
    "append@encrypted": "encrypted",
    **{f"flights@{name}": name.replace("_", ", with a ") for name in ("plain", *_METHODS)},
    **{f"flights@{name}": f"`{wire_type}`" for name, wire_type in _WIRE_TYPES.items()},
    **{f"library@{name}": f"{name}, by Arrow's library" for name in _LIBRARIES},
    "cycles@plain": "cycles as they were written",
    "cycles@compressed": "compressed cycles",
    "seal": "`seal`",
    "verify": "`verify(seals=True)`",
}


def run(task: Task) -> Outcome:
    """Run one operation."""
    what, _, how = task.operation.partition("@")
    return _RUNS[what](task, how)


def _append(task: Task, how: str) -> Outcome:
    """Append messages of one length, with a key or without."""
    options = {"key": _KEY} if how == "encrypted" else {}
    payloads = [bytes([number % 251]) * task.size for number in range(DISTINCT)]
    with _opened(task.queue, **options) as queue, queue.appender() as appender:
        _write(appender, payloads, task.warm_up)
        with Stopwatch() as watch:
            _write(appender, payloads, task.count)
        size = _bytes_of(queue) / task.total
        read = _read(queue, task)
    return _outcome(task, watch, bytes=size, read_nanos=read)


def _flights(task: Task, how: str) -> Outcome:
    """Append flights, compressed, as differences, or neither, and read them."""
    payloads = _payloads(Path(task.directory) / "flights", task.total)
    wire_type = _WIRE_TYPES.get(how)
    method = {"plain": None, _DICTIONARY: "zstd"}.get(how, None if wire_type else how)
    options = {"compression": method, "wire_type": wire_type}
    if how == _DICTIONARY:
        with _opened(task.queue) as queue, queue.appender() as appender:
            appender.write_many(payloads[: task.warm_up])
        compress_dictionary(task.queue)
    with _opened(task.queue, **options) as queue, queue.appender() as appender:
        _each(appender.write_bytes, payloads[: task.warm_up])
        before = _bytes_of(queue)
        with Stopwatch() as watch:
            _each(appender.write_bytes, payloads[task.warm_up :])
        size = (_bytes_of(queue) - before) / task.count
        read = _read(queue, task)
    return _outcome(task, watch, bytes=size, read_nanos=read)


def _library(task: Task, how: str) -> Outcome:
    """Compress the same flights by a library, without a queue."""
    payloads = _payloads(Path(task.directory) / "flights", task.total)
    codec = pa.Codec(_LIBRARIES[how])
    _each(codec.compress, payloads[: task.warm_up])
    with Stopwatch() as watch:
        _each(codec.compress, payloads[task.warm_up :])
    size = sum(len(codec.compress(it)) for it in payloads) / task.total
    with_sizes = [(codec.compress(it), len(it)) for it in payloads[task.warm_up :]]
    with Stopwatch() as reading:
        for content, length in with_sizes:
            codec.decompress(content, length)
    return _outcome(task, watch, bytes=size, read_nanos=reading.nanos / task.count)


def _cycles(task: Task, how: str) -> Outcome:
    """Read cycles that are compressed, or are not."""
    payloads = _payloads(Path(task.directory) / "flights", DISTINCT)
    clock = quire.ManualClock(START_MS)
    with _opened(task.queue, clock=clock) as queue, queue.appender() as appender:
        for _ in range(_CYCLES):
            _write(appender, payloads, task.total // _CYCLES)
            clock.advance(_DAY_MS)
        appender.write_bytes(payloads[0])  # so that the last cycle counts as finished
    if how == "compressed":
        quire.prune(task.queue, max_cycles=1, action="compress")
    files = sorted(task.queue.glob("*.cq4*"))[:_CYCLES]
    size = sum(it.stat().st_blocks * 512 for it in files) / task.total
    with _opened(task.queue, read_only=True) as queue, queue.tailer() as tailer:
        for _ in range(task.warm_up // DISTINCT):
            assert len(tailer.read_many(DISTINCT)) == DISTINCT
        with Stopwatch() as watch:
            for _ in range(task.count // DISTINCT):
                assert len(tailer.read_many(DISTINCT)) == DISTINCT
    return _outcome(task, watch, bytes=size, read_nanos=watch.nanos / task.count)


def _seal(task: Task, how: str) -> Outcome:
    """Seal a queue, or verify one that is sealed."""
    del how
    payloads = _payloads(Path(task.directory) / "flights", DISTINCT)
    with _opened(task.queue) as queue, queue.appender() as appender:
        _write(appender, payloads, task.count)
    is_seal = task.operation == "seal"
    if not is_seal:
        seal(task.queue)
    with Stopwatch() as watch:
        if is_seal:
            assert seal(task.queue) is not None
        else:
            assert quire.verify(task.queue, seals=True).ok
    return _outcome(task, watch)


_RUNS: dict[str, Callable[[Task, str], Outcome]] = {
    "append": _append,
    "flights": _flights,
    "library": _library,
    "cycles": _cycles,
    "seal": _seal,
    "verify": _seal,
}


def _outcome(task: Task, watch: Stopwatch, **details: float) -> Outcome:
    return Detailed(watch.nanos, watch.cpu_nanos, task.count, 0, details)


def _opened(path: Path, **options: Any) -> quire.JournalQueue:  # noqa: ANN401
    given = {"roll_cycle": "FAST_DAILY", "clock": quire.ManualClock(START_MS)} | options
    opened: Any = quire.open
    queue: quire.JournalQueue = opened(path, block_bytes=BLOCK_BYTES, **given)
    return queue


def _each(work: Callable[[bytes], object], payloads: list[bytes]) -> None:
    for payload in payloads:
        work(payload)


def _write(appender: quire.JournalAppender, payloads: list[bytes], count: int) -> None:
    for _ in range(count // DISTINCT):
        appender.write_many(payloads)


def _bytes_of(queue: quire.JournalQueue) -> int:
    """Return where the newest file ends: with headers, padding and index."""
    [*_, cycle] = queue.cycles
    end = queue.end_of_cycle(cycle)
    assert end is not None
    return end[0]


def _read(queue: quire.JournalQueue, task: Task) -> float:
    """Return the nanoseconds that one of the messages that were appended last takes to read."""
    with queue.tailer() as tailer, Stopwatch() as watch:
        for _ in range(task.total // DISTINCT):
            assert len(tailer.read_many(DISTINCT)) == DISTINCT
    return watch.nanos / task.total


def _payloads(path: Path, count: int) -> list[bytes]:
    """Return messages of flights, as `write_map` encodes them."""
    with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        for flight in islice(_rows(), count):
            appender.write_map({**flight._asdict(), "day": flight.day.isoformat()})
        found = [bytes(it) for it in tailer.payloads()]
    assert len(found) == count
    return found


def _rows() -> Iterator[Any]:
    from demo.flights import data_folder, read_flights

    try:
        return read_flights(data_folder())
    except FileNotFoundError as error:
        raise Missing(str(error)) from None
