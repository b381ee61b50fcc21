"""Readers that wait: the CPU of many without a message, and how soon one is woken by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench import latency, life, summary, tables
from bench.harness import Result, Scenario
from bench.life import Described
from bench.scenarios import IDLE, IDLE_RATE, IDLE_SIZE, Volume
from bench.summary import taking

_NAMES = {
    "wake_spin": "`spin()`",
    "wake_follow": "`follow()`",
    "wake_afollow": "`afollow()`",
    "wake_follow@ring": "`follow()`, appended with `buffer_mode='async'`",
    "wake_follow@poll": "`follow()`, polling",
    "wake_afollow@poll": "`afollow()`, polling",
    "idle_threads": "threads in `follow()`",
    "idle_tasks": "tasks in `afollow()`",
}


def settings(places: Sequence[Path], volume: Volume) -> Iterator[Described]:
    """Yield what is measured: how it is described, and what prepares a round."""
    place = places[0]
    yield life.alone("cpu", place, volume.idle.quiet_ms)
    scenario = Scenario(place, IDLE_SIZE, *volume.idle.wakes)
    yield {"kind": "wake"}, scenario, partial(latency.tailing_live, scenario, IDLE_RATE)


def text(results: dict[str, Result]) -> str:
    """Return both tables."""
    found = {one["kind"]: one for one in summary.scenarios(results, "idle")}
    return (
        "CPU of a process whose readers wait for a message that does not come, and how long it "
        f"takes until all have read it:\n\n{_idle(found['cpu'])}\n\n"
        f"From the start of an append to the read in another process, {IDLE_RATE} a second:\n\n"
        f"{_woken(found['wake'])}"
    )


def _idle(scenario: Result) -> str:
    rows: list[tuple[str, ...]] = []
    for one in IDLE["cpu"]:
        cpu = summary.values(scenario, one.key, taking("cpu"))
        woken = summary.values(scenario, one.key, taking("woken_ns", unit=1e6))
        rows.append(
            (
                _name_of(one.name) + summary.mark(scenario),
                f"{cpu.median:.1%}",
                f"{cpu.least:.1%} - {cpu.greatest:.1%}",
                f"{woken.median:.1f}",
                f"{woken.least:.1f} - {woken.greatest:.1f}",
            )
        )
    return tables.table(("", "CPU, of a core", "range", "all read, ms", "range"), rows)


def _woken(scenario: Result) -> str:
    names = ("p50", "p90", "p99", "max")
    rows: list[tuple[str, ...]] = []
    for one in IDLE["wake"]:
        found = [summary.percentile(scenario, one.key, "begin", name) for name in names]
        cells = [tables.microseconds(spread.median) for spread in found]
        ends = (tables.microseconds(end) for end in (found[0].least, found[0].greatest))
        rows.append((_name_of(one.name) + summary.mark(scenario), *cells, " - ".join(ends)))
    return tables.table(("", *(f"{name}, us" for name in names), "p50 range"), rows)


def _name_of(operation: str) -> str:
    if operation in _NAMES:
        return _NAMES[operation]
    kind, amount, *polls = operation.split("@")
    return f"{int(amount):,} {_NAMES[kind]}{', polling' if polls else ''}"
