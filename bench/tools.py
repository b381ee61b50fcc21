"""The command line: reading beside Java, dumping, looking for messages, verifying, its start."""

from __future__ import annotations

import json
import mmap
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import quire
from bench import machine, summary, tables
from bench.harness import ROOT, TIMEOUT_S, Failed, Measure, Result, Scenario, fresh_directory
from bench.harness import result as stored
from bench.scenarios import TOOLS, Operation, Volume
from bench.summary import CPU_TIME
from bench.task import BLOCK_BYTES, DISTINCT, ROLL_CYCLE, START_MS
from quire import ManualClock

Setting: TypeAlias = Callable[[], AbstractContextManager[Measure]]

SIZE = 58
"""The bytes of a message, nearly."""
CYCLES = 1000
QUEUES = 57
_SYMBOLS = ("EURUSD", "USDJPY", "GBPUSD", "AUDUSD")
_IN_A_MESSAGE: Final = {
    "read@jsonl": b"\n",
    "read@csv": b"\n",
    "read@text": b"\n",
    "metrics": b"\nquire_up{",
}
"""What is printed once for each message, or queue; the others have the first field."""
_FIELD: Final = b"symbol: "
UNITS: Final = {"read": "message", "dump": "message", "where": "message", "verify": "byte"}
"""What a rate counts; the other kinds are whole commands."""


def settings(place: Path, volume: Volume) -> Iterator[tuple[Result, Scenario, Setting]]:
    """Yield what is measured: how it is described, and what prepares a round."""
    count = volume.tools
    with fresh_directory(place, SIZE, 4 * count) as folder:
        _fill(folder / "small", DISTINCT)
        _fill(folder / "large", count)
        _fill_cycles(folder / "cycles")
        for number in range(QUEUES):
            _fill(folder / "queues" / f"{number}", DISTINCT)
        verified = quire.verify(folder / "large").bytes
        for kind in TOOLS:
            scenario = Scenario(place, SIZE, count, 0)
            units = {"message": count, "byte": verified}.get(UNITS.get(kind, ""), 1)
            measure: Measure = partial(_measure, folder, count, units)
            yield {"kind": kind, "units": units}, scenario, partial(_as_it_is, measure)


def _as_it_is(measure: Measure) -> AbstractContextManager[Measure]:
    return nullcontext(measure)


def _fill(path: Path, count: int) -> None:
    clock = ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle=ROLL_CYCLE, clock=clock, block_bytes=BLOCK_BYTES) as queue,
        queue.appender() as appender,
    ):
        for number in range(count):
            appender.write_map(
                {
                    "symbol": _SYMBOLS[number % len(_SYMBOLS)],
                    "side": "buy" if number % 2 else "sell",
                    "price": 1 + number % DISTINCT / 1e4,
                    "size": number,
                }
            )


def _fill_cycles(path: Path) -> None:
    clock = ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_SECONDLY", clock=clock, block_bytes=1 << 16) as queue,
        queue.appender() as appender,
    ):
        for _ in range(CYCLES):
            appender.write_text("x")
            clock.advance(1000)


def _measure(folder: Path, count: int, units: int, one: Operation) -> Result:
    """Run an operation and check what it printed."""
    out = folder / "out"
    with machine.observed() as surroundings:
        if one.name in {"where", "verify", "metrics"}:
            nanos, cpu_nanos = _inside(folder, one.name, out, count)
        else:
            nanos, cpu_nanos = _command(_line(folder, one), out)
    _check(one, out, count)
    return stored(surroundings, nanos=nanos / units, cpu_nanos=cpu_nanos / units)


def _line(folder: Path, one: Operation) -> list[str]:
    if one.system == "chronicle":
        from bench.adapters import chronicle

        options = ["-d"] if one.name == "ChronicleReaderMain" else []
        return [*chronicle.main_command(one.name), *options, str(folder / "large")]
    program = [sys.executable, "-c", "import sys; from quire.cli import main; sys.exit(main())"]
    if one.name == "version":
        return [*program, "--version"]
    verb, _, style = one.name.partition("@")
    path = str(folder / ("cycles" if verb == "stat" else "large"))
    return [*program, verb, path, *(["--format", style] if style else [])]


def _command(line: Sequence[str], out: Path) -> tuple[int, int]:
    """Run a command; return its time, and the CPU time that it used, in nanoseconds."""
    with out.open("wb") as stdout:
        used, begin = _cpu_s(), time.monotonic_ns()
        done = subprocess.run(
            line, cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False
        )
        nanos = time.monotonic_ns() - begin
    if done.returncode:
        raise Failed(f"it failed: command={line} exit={done.returncode}\n{done.stderr[-3000:]!r}")
    return nanos, round((_cpu_s() - used) * 1e9)


def _inside(folder: Path, name: str, out: Path, count: int) -> tuple[int, int]:
    """Run a verb in a process that did so before."""
    verb = ["read", "--where", f"size >= {count - 1}"] if name == "where" else [name]
    large = folder / ("queues" if name == "metrics" else "large")
    paths = [str(out), str(folder / "small"), str(large)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.verb", *paths, *verb],
        cwd=ROOT,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise Failed(f"it failed: verb={name} exit={done.returncode}\n{done.stderr[-3000:]!r}")
    outcome = json.loads(done.stdout)
    return outcome["nanos"], outcome["cpu_nanos"]


def _check(one: Operation, out: Path, count: int) -> None:
    """Check that it printed every message, the one that was looked for, or every queue."""
    others = {"where": 1, "read@csv": count + 1, "metrics": QUEUES}
    others |= dict.fromkeys(("verify", "stat", "version"), 0)
    wanted, mark = others.get(one.name, count), _IN_A_MESSAGE.get(one.name, _FIELD)
    with out.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as printed:
        found, at = 0, printed.find(mark)
        while at >= 0:
            found, at = found + 1, printed.find(mark, at + 1)
    if found != wanted:
        raise Failed(f"other messages: operation={one.key} found={found} expected={wanted}")


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def text(results: dict[str, Result]) -> str:
    """Return the table of the part."""
    head = ("command", "system", "s", "range", "CPU s", "a second", "against Java", "range")
    rows: list[tuple[str, ...]] = []
    for one in summary.scenarios(results, "tools"):
        units, keys = one["units"], summary.operations(one)
        mark = summary.mark(one)
        for key in sorted(keys, reverse=True):
            spread, cpu = summary.nanos(one, key), summary.nanos(one, key, CPU_TIME)
            s = units / 1e9
            java = next((it for it in keys if it.startswith("chronicle.")), None)
            beside = None if java in {None, key} else summary.ratio(one, key, str(java))
            rows.append(
                (
                    one["kind"],
                    tables.full_name(key),
                    f"{spread.median * s:.3f}{mark}",
                    f"{spread.least * s:.3f} - {spread.greatest * s:.3f}",
                    f"{cpu.median * s:.3f}",
                    _rate(one["kind"], spread.median),
                    "" if beside is None else f"{beside.median:.2f} x",
                    "" if beside is None else f"{beside.least:.2f} - {beside.greatest:.2f}",
                )
            )
    return tables.table(head, rows)


def _rate(kind: str, nanos: float) -> str:
    unit = UNITS.get(kind)
    if unit is None:
        return ""
    return f"{1e3 / nanos:,.0f} MB" if unit == "byte" else tables.rate(1e9 / nanos)
