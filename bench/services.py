"""
How long a message takes through three services in a row: `python -m bench.services`.

From before the call that writes it into the first queue until it was read from the fourth. Each
service takes an object of five fields, changes one, and writes it on, with history. `thread`: the
three and the reader take turns in one thread. `processes`: each service has a process, and so has
the writer, which reads too; all of them are busy, so five processors are needed. `asleep`: the
same, but each service sleeps until a message comes, and two processors do. Messages are due at a
fixed rate, and the time of each counts from when it was due, also if the one before held it up.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import quire
from bench import tables
from quire import pausers

_HOPS = 3


@quire.message(alias="BenchOrder")
@dataclasses.dataclass
class Order:
    """What goes through."""

    symbol: str
    price: float
    quantity: int
    hops: int
    due_ns: int


class Orders(Protocol):
    """What each service reads and writes."""

    def order(self, order: Order, /) -> None:
        """Pass an order on."""


class Hop:
    """A service: one output for each input."""

    def __init__(self, out: Orders) -> None:
        self._out = out

    def order(self, order: Order, /) -> None:
        """Count the hop."""
        order.hops += 1
        self._out.order(order)


class End:
    """Reads what comes out."""

    def __init__(self) -> None:
        self.nanos: list[int] = []

    def order(self, order: Order, /) -> None:
        """Take the time."""
        self.nanos.append(time.monotonic_ns() - order.due_ns)
        assert order.hops == _HOPS


def main() -> None:
    """Measure both ways and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=10_000, help="messages a second")
    parser.add_argument("--ways", default="thread,processes")
    parser.add_argument("--dir", type=Path, default=None)
    asked = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for way in asked.ways.split(","):
        with tempfile.TemporaryDirectory(dir=asked.dir) as folder:
            nanos = WAYS[way](Path(folder), asked.count, 1_000_000_000 // asked.rate)
        kept = nanos[len(nanos) // 10 :]  # the rest is warm-up
        assert len(nanos) == asked.count
        cuts = statistics.quantiles(kept, n=1000, method="inclusive")
        cells = [f"{cuts[round(part * 10) - 1] / 1000:.1f}" for part in (50, 90, 99, 99.9)]
        rows.append((way, f"{asked.rate:,}", *cells, f"{max(kept) / 1000:.0f}"))
    print(f"{os.cpu_count()} processors; microseconds, end to end, {_HOPS} services")
    head = ("way", "messages/s", "p50", "p90", "p99", "p99.9", "max")
    print(tables.table(head, rows))


def _in_one_thread(folder: Path, count: int, every_ns: int) -> list[int]:
    _create(folder)
    services = [_service(folder, hop) for hop in range(_HOPS)]
    turns = [service.run_once for service in services]

    def take_turns() -> None:
        for turn in turns:
            turn()

    nanos = _write_and_read(folder, count, every_ns, take_turns)
    for service in services:
        service.close()
    return nanos


def _in_processes(
    run: Callable[[Path, int], None], folder: Path, count: int, every_ns: int
) -> list[int]:
    _create(folder)
    fresh = multiprocessing.get_context("spawn")
    running = [fresh.Process(target=run, args=(folder, hop), daemon=True) for hop in range(_HOPS)]
    for process in running:
        process.start()
    time.sleep(2)  # they have started, or make the first messages late, which do not count
    nanos = _write_and_read(folder, count, every_ns, lambda: None)
    for process in running:
        process.kill()
        process.join()
    return nanos


def _write_and_read(
    folder: Path, count: int, every_ns: int, between: Callable[[], None]
) -> list[int]:
    end = End()
    with (
        quire.open(folder / "0") as first,
        quire.open(folder / str(_HOPS)) as last,
        first.appender() as appender,
        last.tailer() as tailer,
    ):
        orders = appender.method_writer(Orders)
        read_one = tailer.method_reader(end).read_one
        gc.disable()
        due_ns = time.monotonic_ns()
        sent = 0
        while len(end.nanos) < count:
            if sent < count and time.monotonic_ns() >= due_ns:
                orders.order(Order("EURUSD", 1.0625, sent, 0, due_ns))
                sent += 1
                due_ns += every_ns
            between()
            read_one()
        gc.enable()
    return end.nanos


def _create(folder: Path) -> None:
    for number in range(_HOPS + 1):
        quire.open(folder / str(number), source_id=number + 1).close()


def _service(folder: Path, hop: int) -> quire.Service:
    return quire.service(
        inputs=[folder / str(hop)], output=folder / str(hop + 1), handler=Hop, replay="missed"
    )


def _run_busily(folder: Path, hop: int) -> None:
    gc.disable()
    _service(folder, hop).run(pausers.busy())


def _run_asleep(folder: Path, hop: int) -> None:
    gc.disable()
    _service(folder, hop).run()


WAYS: dict[str, Callable[[Path, int, int], list[int]]] = {
    "thread": _in_one_thread,
    "processes": partial(_in_processes, _run_busily),
    "asleep": partial(_in_processes, _run_asleep),
}
"""From a folder, a count and the nanoseconds from one to the next: how long each took."""


if __name__ == "__main__":
    main()
