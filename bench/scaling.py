"""How costs grow: with messages, cycles, readers, members of a group, writers and sizes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import contention, growth, life, machine, summary, tables
from bench.harness import (
    Failed,
    Measure,
    Result,
    Scenario,
    fresh_directory,
    measure_rate,
    result,
    run_to_end,
)
from bench.life import Described
from bench.scenarios import SCALING, Amount, Operation, Volume
from bench.task import DISTINCT

SIZE = 40
KINDS = {
    "messages": "messages of 40 bytes in a queue",
    "cycles": "cycles of a queue",
    "tailers": "processes that each read all messages",
    "members": "processes that share a consumer group",
    "writers": "processes that append to one queue",
    "sizes": "bytes a message",
}
"""What grows, as it is shown."""
NAMES = {
    "write_many": "append, `write_many`",
    "read_batch": "read, `read_batch`",
    "seek": "`move_to_index` at random, and read",
    "open": "open, `to_end`, close",
    "cycles": "roll and append",
    "first": "open, and the first append of the process",
    "tailer": "read, `read_batch`, together",
    "member": "`read_many(1000)` and `ack_many`, together",
    "write_bytes": "append, `write_bytes`, together",
    "write_sized": "append, `write_bytes`",
    "read_sized": "read, `payloads`",
}
_COUNTS = {"seek": (20_000, 2000), "open": (20, 2), "first": (1, 0)}
"""How often each is done, and how often before to warm up."""
_FEW = 4
_MANY = 1_000_000


def settings(place: Path, volume: Volume) -> Iterator[Described]:
    """Yield what is measured: how it is described, and what prepares a round."""
    scaling = volume.scaling
    for amount in scaling.messages:
        yield _described("messages", amount, place, amount, _aged)
    for amount in scaling.cycles:
        yield _described("cycles", amount, place, amount, _aged)
    for amount in scaling.processes:
        yield _described("tailers", amount, place, scaling.read, _reading)
        yield _described("members", amount, place, scaling.read, _reading)
    for amount in scaling.processes:
        warm_up = volume.contention_warm_up // amount // DISTINCT * DISTINCT
        most = Amount(scaling.written, max(warm_up, DISTINCT))
        scenario = Scenario(place, SIZE, *most)
        setting = partial(contention.contending, scenario, amount, volume.contention_ms)
        yield {"kind": "writers", "amount": amount}, scenario, setting
    for size in scaling.sizes:
        count = min(max(scaling.bytes // size, _FEW), _MANY)
        scenario = Scenario(place, size, count, 0)
        yield {"kind": "sizes", "amount": size}, scenario, partial(_sized, scenario)


def _described(
    kind: str,
    amount: int,
    place: Path,
    count: int,
    setting: Callable[[str, int, Scenario], AbstractContextManager[Measure]],
) -> Described:
    scenario = Scenario(place, SIZE, count, 0)
    return {"kind": kind, "amount": amount}, scenario, partial(setting, kind, amount, scenario)


@contextmanager
def _aged(kind: str, amount: int, scenario: Scenario) -> Generator[Measure]:
    """Fill a queue, which is measured too, and have the runs of a round use it."""
    with fresh_directory(scenario.place, SIZE, growth.room_of(kind, amount)) as directory:
        fill = growth.filling(directory, kind, amount)
        filled = measure_rate(fill) if kind == "messages" else life.measure(fill)

        def measure(one: Operation) -> Result:
            if one.name == fill.operation:
                return filled
            count, warm_up = _COUNTS.get(one.name, (amount, 0))
            asked = replace(fill, operation=one.name, count=count, warm_up=warm_up)
            return life.measure(asked)

        yield measure


@contextmanager
def _reading(kind: str, amount: int, scenario: Scenario) -> Generator[Measure]:
    """Fill a queue that *amount* processes then read together."""
    with fresh_directory(scenario.place, SIZE, scenario.total) as directory:
        run_to_end(scenario.task(Operation("quire", "write_many"), directory))
        expected = scenario.count * (amount if kind == "tailers" else 1)

        def measure(one: Operation) -> Result:
            with machine.observed() as surroundings:
                found = contention.run(scenario.task(one, directory), amount)
            count = sum(int(it["count"]) for it in found)
            if count != expected:
                raise Failed(f"another count: {kind}={amount} {count=} {expected=}")
            return result(
                surroundings,
                nanos=max(it["nanos"] for it in found) / count,
                cpu_nanos=sum(it["cpu_nanos"] for it in found) / count,
            )

        yield measure


@contextmanager
def _sized(scenario: Scenario) -> Generator[Measure]:
    """Fill a queue with messages of one size, which is measured too."""
    with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
        write, read = (scenario.task(one, directory) for one in SCALING["sizes"])
        written = life.measure(write)

        def measure(one: Operation) -> Result:
            return written if one.name == write.operation else life.measure(read)

        yield measure


def text(results: dict[str, Result]) -> str:
    """Return a table of each kind that was measured."""
    return summary.by_kind(
        results,
        "scaling",
        {kind: (f"By {shown}", _table) for kind, shown in KINDS.items()},
    )


def _table(scenarios: Sequence[Result]) -> str:
    """Return what each operation costs in nanoseconds, a line for each amount."""
    keys = summary.operations(scenarios[0])
    rows: list[tuple[str, ...]] = []
    for one in scenarios:
        found = [summary.nanos(one, key) for key in keys]
        cells = [f"{it.median:,.0f} ({it.least:,.0f} - {it.greatest:,.0f})" for it in found]
        rows.append((f"{one['amount']:,}{summary.mark(one)}", *cells))
    return tables.table(("", *(f"{NAMES[key.partition('.')[2]]}, ns" for key in keys)), rows)
