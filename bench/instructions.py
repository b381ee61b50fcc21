"""
Counts the machine instructions of a message, which no noise changes: ``make instructions``.

One process does everything under valgrind's callgrind, which writes down what it counted whenever
getppid is called; so each piece of work stands alone. Each is done once and twice over, and the
difference is what the messages cost. Counted is what runs in the extension itself, and how often it
calls out of it (to copy, to allocate, to ask Python), so that another Python or C library changes
nothing. What the system does, such as making pages, is not counted.

The test that holds it against ``bench/instructions.json`` is ``tests/bench/test_instructions.py``.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import quire
from bench.trades import Market, SlottedTrade, Trade, trades
from quire import _native

BASELINE = Path(__file__).with_suffix(".json")
PER_UNIT = 1000
_UNITS = 12
_WARM_UP = 2
_SIZE = 96
_MARK = "getppid"

Work: TypeAlias = Callable[[int], object]
"""Handles so many times a thousand messages."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one message costs."""

    instructions: float
    calls: float
    """Calls out of the extension."""


def measure() -> dict[str, Cost]:
    """Count, and return the cost of a message for each operation."""
    with tempfile.TemporaryDirectory(prefix="quire-instructions-") as directory:
        counts = Path(directory, "counts")
        valgrind = [
            *("valgrind", "--quiet", "--tool=callgrind", f"--dump-before={_MARK}"),
            *("--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={counts}"),
        ]
        work = [sys.executable, "-s", "-m", "bench.instructions", "--work", directory]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        root = Path(__file__).parents[1]
        subprocess.run([*valgrind, *work], cwd=root, env=environment, check=True)
        # The first dump is the start; then comes one for each piece of work, and what lies between.
        dumps = [_count(Path(f"{counts}.{2 * place + 2}")) for place in range(2 * len(_OPERATIONS))]
    found = zip(_OPERATIONS, dumps[::2], dumps[1::2], strict=True)
    messages = _UNITS * PER_UNIT
    return {
        name: Cost(
            round((twice.instructions - once.instructions) / messages, 2),
            round((twice.calls - once.calls) / messages, 2),
        )
        for name, once, twice in found
    }


def _count(dump: Path) -> Cost:
    """Add up what was counted in the extension's own functions, and its calls to others."""
    own, target, instructions, calls = False, "", 0, 0
    extension = f"ob={_native.__file__}"
    lines = iter(dump.read_text("utf-8").splitlines())
    for line in lines:
        if line.startswith("ob="):
            own = line == extension
        elif line.startswith("cob="):
            target = line
        elif line.startswith("calls="):
            next(lines)  # what the called function cost
            if own and target and target != f"c{extension}":
                calls += int(line.removeprefix("calls=").split()[0])
            target = ""
        elif own and line[:1].isdigit():
            instructions += int(line.split()[1])
    return Cost(instructions, calls)


def _write_bytes(queue: quire.JournalQueue) -> Work:
    write, payload = queue.appender().write_bytes, bytes(_SIZE)

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            write(payload)

    return work


def _write_many(queue: quire.JournalQueue) -> Work:
    write, payloads = queue.appender().write_many, [bytes(_SIZE)] * PER_UNIT

    def work(units: int) -> None:
        for _ in range(units):
            write(payloads)

    return work


def _read_bytes(queue: quire.JournalQueue) -> Work:
    read = queue.tailer().read_bytes

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            assert read() is not None

    return work


def _payloads(queue: quire.JournalQueue) -> Work:
    payloads = queue.tailer().payloads()

    def work(units: int) -> None:
        for _ in islice(payloads, units * PER_UNIT):
            pass

    return work


def _read_many(queue: quire.JournalQueue) -> Work:
    read = queue.tailer().read_many

    def work(units: int) -> None:
        for _ in range(units):
            assert len(read(PER_UNIT)) == PER_UNIT

    return work


def _read_batch(queue: quire.Queue) -> Work:
    read = queue.tailer().read_batch

    def work(units: int) -> None:
        for _ in range(units):
            assert read(PER_UNIT).num_rows == PER_UNIT

    return work


def _write_message(queue: quire.JournalQueue) -> Work:
    write, objects = queue.appender().write_message, trades()

    def work(units: int) -> None:
        for _ in range(units):
            for trade in objects:
                write(trade)

    return work


def _read_message(queue: quire.JournalQueue) -> Work:
    read = queue.tailer().read_message

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            assert read(Trade) is not None

    return work


def _read_slotted(queue: quire.JournalQueue) -> Work:
    read = queue.tailer().read_message

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            assert read(SlottedTrade) is not None

    return work


def _spin(queue: quire.JournalQueue) -> Work:
    tailer = queue.tailer()
    spin, read = tailer.spin, tailer.read_bytes

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            assert spin()
            assert read() is not None

    return work


def _poll_nothing(queue: quire.JournalQueue) -> Work:
    tailer = queue.tailer()
    tailer.to_end()
    read = tailer.read_bytes

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            assert read() is None

    return work


def _method_write(queue: quire.JournalQueue) -> Work:
    call, objects = queue.appender().method_writer(Market).trade, trades()

    def work(units: int) -> None:
        for _ in range(units):
            for trade in objects:
                call(trade)

    return work


class _Handler:
    def trade(self, trade: Trade) -> None:
        """Take a trade."""


def _method_read(queue: quire.JournalQueue) -> Work:
    read_one = queue.tailer().method_reader(_Handler()).read_one

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            assert read_one()

    return work


def _columns(queue: quire.JournalQueue) -> Work:
    tailer, schema = queue.tailer(), quire.Schema.from_methods(Market)

    def work(units: int) -> None:
        for _ in range(units):
            assert tailer.read_batch(PER_UNIT, schema=schema, method="trade").num_rows == PER_UNIT

    return work


def _pack(queue: quire.quick_queue.QuickQueue) -> Work:
    message, rest = queue.appender().new_message(), bytes(_SIZE - 8)

    def work(units: int) -> None:
        for number in range(units * PER_UNIT):
            message.pack_long(number).pack_raw(rest).write_message()

    return work


def _unpack(queue: quire.quick_queue.QuickQueue) -> Work:
    read = queue.tailer().read

    def work(units: int) -> None:
        for _ in range(units * PER_UNIT):
            excerpt = read()
            assert excerpt is not None
            excerpt.unpack().unpack_long()

    return work


def _claim(queue: quire.JournalQueue) -> Work:
    consumer = queue.group("claims").consumer()

    def work(units: int) -> None:
        for _ in range(units):
            batch = consumer.read_many(PER_UNIT)
            assert len(batch.payloads()) == PER_UNIT
            assert consumer.ack_many(batch) == PER_UNIT

    return work


_OPERATIONS: dict[str, tuple[str, Callable[[Any], Work]]] = {
    "write_bytes": ("bytes", _write_bytes),
    "write_many": ("bytes", _write_many),
    "read_bytes": ("bytes", _read_bytes),
    "payloads": ("bytes", _payloads),
    "read_many": ("bytes", _read_many),
    "read_batch": ("bytes", _read_batch),
    "spin": ("bytes", _spin),
    "poll_nothing": ("bytes", _poll_nothing),
    "write_message": ("objects", _write_message),
    "read_message": ("objects", _read_message),
    "read_slotted": ("objects", _read_slotted),
    "method_write": ("calls", _method_write),
    "method_read": ("calls", _method_read),
    "columns": ("calls", _columns),
    "claim": ("bytes", _claim),
    "vanilla write_many": ("vanilla", _write_many),
    "vanilla read_batch": ("vanilla", _read_batch),
    "quick write_bytes": ("quick-queue", _write_bytes),
    "quick write_many": ("quick-queue of many", _write_many),
    "quick read_many": ("quick-queue of many", _read_many),
    "pack": ("quick-queue of fields", _pack),
    "unpack": ("quick-queue of fields", _unpack),
}
"""
Of each the queue it works on, and what prepares it.

The name of a queue of an older format begins with that. A Quick-Queue has but one appender.
"""


def _work(directory: Path) -> None:
    with ExitStack() as stack:
        queues = {
            name: stack.enter_context(_open(directory / name))
            for name in dict.fromkeys(name for name, _ in _OPERATIONS.values())
        }
        for name, prepare in _OPERATIONS.values():
            work = prepare(queues[name])
            work(_WARM_UP)
            for units in (_UNITS, 2 * _UNITS):
                os.getppid()
                work(units)
                os.getppid()


def _open(path: Path) -> Any:  # noqa: ANN401 - of three classes
    clock = quire.ManualClock(1_700_000_000_000)
    match path.name.partition(" ")[0]:
        case "quick-queue":
            return quire.open(path, format="quick-queue")
        case "vanilla":
            return quire.open(path, format="vanilla", clock=clock)
    # Without the thread that works ahead: how far it comes is up to the scheduler.
    return quire.open(path, roll_cycle="FAST_DAILY", clock=clock, pretouch=False)


def surroundings() -> dict[str, str]:
    """Return what else than the source decides about the counts."""
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
    return {"machine": platform.machine(), "rustc": rustc.stdout.split()[1]}


def baseline() -> dict[str, Any]:
    """Return what was counted when the baseline was renewed."""
    stored: dict[str, Any] = json.loads(BASELINE.read_text("utf-8"))
    return stored


def main() -> None:
    """Count, print beside the baseline, and renew it."""
    before = baseline()["costs"] if BASELINE.exists() else {}
    found = {name: asdict(cost) for name, cost in measure().items()}
    for name, cost in found.items():
        print(f"{name:13} {cost}  before: {before.get(name)}")
    BASELINE.write_text(json.dumps({**surroundings(), "costs": found}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    if "--work" in sys.argv:
        _work(Path(sys.argv[-1]))
    else:
        main()
