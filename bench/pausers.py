"""
What each pauser costs while nothing happens, and how soon it wakes: `python -m bench.pausers`.

Idle CPU is what the process used in a second in which its one thread polled a tailer of an empty
queue. Wake latency is from `unpause()` in another thread, or an append where nobody calls it, until
`pause()` returned and the tailer had the message. Prints the table of docs/services.md.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import threading
import time
from collections.abc import Callable

import quire
from bench import tables
from quire import pausers
from quire.pausers import Pauser


class _Awaited(Pauser):
    """Pauses by `await`."""


_KINDS: dict[str, Callable[[], Pauser]] = {
    "busy()": pausers.busy,
    "yielding()": pausers.yielding,
    "balanced()": pausers.balanced,
    "sleepy()": pausers.sleepy,
    "millis(1, 10)": lambda: pausers.millis(1, 10),
    "timeout(60)": lambda: pausers.timeout(60),
    "async_()": lambda: _Awaited(yield_count=100, max_s=0.001),
}


def main() -> None:
    """Measure every kind and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="messages for each latency")
    parser.add_argument("--idle-s", type=float, default=1.0)
    asked = parser.parse_args()
    head = ("pauser", "idle CPU", "append to read, p50", "p99", "with unpause, p50", "p99")
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for place, (name, kind) in enumerate(_KINDS.items()):
            with quire.open(f"{folder}/{place}") as queue:
                latencies = [_latencies(queue, kind(), asked.count, wake=w) for w in (False, True)]
                idle = _idle(queue, kind(), asked.idle_s)
            cells = [_micros(one, part) for one in latencies for part in (0.5, 0.99)]
            rows.append((f"`{name}`", f"{idle:.1%}", *cells))
    print(tables.table(head, rows))


def _idle(queue: quire.JournalQueue, pauser: Pauser, idle_s: float) -> float:
    with queue.tailer() as tailer:
        tailer.to_end()
        asyncio.run(_poll(tailer, pauser, 0.3))  # until it sleeps as long as it does
        began_s, used_s = time.monotonic(), time.process_time()
        asyncio.run(_poll(tailer, pauser, idle_s))
        return (time.process_time() - used_s) / (time.monotonic() - began_s)


async def _poll(tailer: quire.JournalTailer, pauser: Pauser, for_s: float) -> None:
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        assert tailer.read_bytes() is None
        await _pause(pauser)


async def _pause(pauser: Pauser) -> None:
    if isinstance(pauser, _Awaited):
        await pauser.apause()
    else:
        pauser.pause()


def _latencies(queue: quire.JournalQueue, pauser: Pauser, count: int, *, wake: bool) -> list[int]:
    """Return nanoseconds from an append to its message, with 20 ms of silence before each."""
    ready = threading.Event()
    taken: list[int] = []

    async def read() -> None:
        with queue.tailer() as tailer:
            tailer.to_end()
            ready.set()
            while len(taken) < count:
                payload = tailer.read_bytes()
                if payload is None:
                    await _pause(pauser)
                else:
                    taken.append(time.monotonic_ns() - int.from_bytes(payload))
                    pauser.reset()

    reader = threading.Thread(target=lambda: asyncio.run(read()))
    reader.start()
    ready.wait()
    with queue.appender() as appender:
        for _ in range(count):
            time.sleep(0.02)
            appender.write_bytes(time.monotonic_ns().to_bytes(8))
            if wake:
                pauser.unpause()
    reader.join()
    return taken


def _micros(nanos: list[int], part: float) -> str:
    return f"{statistics.quantiles(nanos, n=100)[round(part * 100) - 1] / 1000:.0f} us"


if __name__ == "__main__":
    main()
