"""Encryption, compression and seals: what they take, and what they save."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import life, summary, tables
from bench.harness import Result
from bench.life import Described
from bench.scenarios import SEALED, Volume
from bench.summary import kept, taking

SIZE = 96
_HEADS = {
    "encrypt": "Messages of 96 bytes, `write_many`, and read by `read_many`:",
    "compress": "Flights, `write_bytes`, and read by `read_many`:",
    "cycles": "Flights, read by `read_many`:",
    "seal": "Flights:",
}


def settings(places: Sequence[Path], volume: Volume) -> Iterator[Described]:
    """Yield what is measured: how it is described, and what prepares a round."""
    for kind in SEALED:
        yield life.alone(kind, places[0], volume.sealed, size=SIZE)


def text(results: dict[str, Result]) -> str:
    """Return a table of each kind that was measured."""
    return "\n\n".join(
        f"{_HEADS[one['kind']]}\n\n{_table(one)}" for one in summary.scenarios(results, "sealed")
    )


def _table(scenario: Result) -> str:
    head = ("on", "", "ns a message", "range", "messages/s", "ns to read", "bytes a message")
    wanted = [it.key for it in SEALED[scenario["kind"]] if it.key in summary.operations(scenario)]
    return tables.table(head, [_row(scenario, key) for key in wanted])


def _row(scenario: Result, key: str) -> tuple[str, ...]:
    spread = summary.nanos(scenario, key)
    mark = summary.mark(scenario)
    return (
        scenario["file_system"],
        tables.full_name(key),
        f"{spread.median:,.0f}{mark}",
        f"{spread.least:,.0f} - {spread.greatest:,.0f}",
        tables.rate(1e9 / spread.median),
        _detail(scenario, key, "read_nanos", lambda it: f"{it:,.0f}"),
        _detail(scenario, key, "bytes", lambda it: f"{it:,.1f}"),
    )


def _detail(scenario: Result, key: str, name: str, form: Callable[[float], str]) -> str:
    """Return the median of a figure that only some operations have."""
    if name not in kept(scenario)[0]["runs"][key]:
        return ""
    return form(summary.values(scenario, key, taking(name)).median)
