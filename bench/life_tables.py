"""The tables of the part `life`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench import summary, tables
from bench.harness import Result
from bench.scenarios import LIFE
from bench.summary import taking


class Column(NamedTuple):
    """What is shown of an operation: its median over the rounds, and its range."""

    head: str
    take: Callable[[Result], float]
    form: Callable[[float], str] = tables.microseconds


def _whole(value: float) -> str:
    return f"{value:,.0f}"


_HEADS = {
    "groups": "Consumer groups, one member:",
    "warm": "The append call at 100,000/s, in windows of 655 messages:",
    "ring": "The same for 0.5 s, with the drainer stopped or the lock held by another process:",
    "seek": "The first `move_to_time` of a new process:",
    "roll": "The append that rolls:",
    "idle": "Tailers with nothing to read, polled in turn:",
    "logging": "A call of `logger.info` with two arguments:",
    "recording": "Messages that another process sends over the loopback:",
}
_COLUMNS = {
    "groups": [
        Column("ns a message", taking("nanos"), _whole),
        Column("CPU ns", taking("cpu_nanos"), _whole),
    ],
    "warm": [
        Column("window max, us", taking("windows", "max")),
        Column("p99.9, us", taking("append", "p99.9")),
        Column("longest, us", taking("append", "max")),
        Column("page faults a million", taking("faults"), _whole),
    ],
    "ring": [
        Column("window max, us", taking("windows", "max")),
        Column("longest, us", taking("append", "max")),
    ],
    "seek": [
        Column("ms", taking("nanos", unit=1e6)),
        Column("CPU ms", taking("cpu_nanos", unit=1e6)),
        Column("ms to import", taking("import_nanos", unit=1e6)),
        Column("ms to open", taking("open_nanos", unit=1e6)),
    ],
    "roll": [Column(f"{name}, us", taking("append", name)) for name in ("p50", "p99", "max")],
    "idle": [
        Column("ns a poll", taking("nanos"), _whole),
        Column("directory read, times", taking("listed"), _whole),
        Column("files opened", taking("opened"), _whole),
    ],
    "logging": [
        Column("us a record", taking("nanos", unit=1e3)),
        Column("CPU us", taking("cpu_nanos", unit=1e3)),
    ],
    "recording": [
        Column("us a message", taking("nanos", unit=1e3)),
        Column("CPU us", taking("cpu_nanos", unit=1e3)),
        Column("dropped, %", taking("dropped", unit=0.01)),
    ],
}
_RATED = {"groups", "recording"}
_REFUSED = "ends with StackOverflowError in the open version"
_NAMES = {
    "quire.group@batches": "`read_many(1000)`, `ack_many`",
    "quire.group@acks": "`ack_many` of 1,000 alone",
    "quire.group@data": "`read_many(1000)`, each message's data, `ack_many`",
    "quire.group@keyed": "the same, with 1,000 keys",
    "quire.group@messages": "`for message in consumer: message.ack()`",
    "quire.paced": "Quire",
    "quire.paced@pretoucher": "Quire, `pretoucher()`",
    "chronicle.paced": "Java",
    "chronicle.paced@micro_touch": "Java, `microTouch()`",
    "quire.direct": "directly, undisturbed",
    "quire.locked": "directly, lock held",
    "quire.locked@ring": "through the ring, lock held",
    "quire.stopped@ring": "through the ring, drainer stopped",
    "quire.seek@field": "to the time of a message",
    "quire.seek@cycle": "to the start of a cycle",
    "quire.roll": "as usual",
    "quire.roll@early": "with `early_acquire_next_cycle`",
    "quire.idle@1": "1 tailer",
    "quire.idle@1000": "1,000 tailers",
}


def text(results: dict[str, Result]) -> str:
    """Return a table of each kind that was measured."""
    found = summary.scenarios(results, "life")
    kinds = dict.fromkeys(str(one["kind"]) for one in found)
    return "\n\n".join(
        f"{_HEADS[kind]}\n\n{_table(kind, [one for one in found if one['kind'] == kind])}"
        for kind in kinds
    )


def _table(kind: str, found: list[Result]) -> str:
    columns = _COLUMNS[kind]
    head = ["on", "", *(name for one in columns for name in (one.head, "range"))]
    if kind in _RATED:
        head.append("messages/s")
    wanted = [it.key for it in LIFE[kind]]
    rows = [_row(one, key) for one in found for key in wanted if key in summary.operations(one)]
    if kind == "warm" and any(one.startswith("Java") for _, one, *_ in rows):
        refused = (found[0]["file_system"], "Java, `pretouch()`", _REFUSED)
        rows.append((*refused, *[""] * (len(head) - len(refused))))
    return tables.table(head, rows)


def _row(scenario: Result, key: str) -> tuple[str, ...]:
    mark = summary.mark(scenario)
    cells = [scenario["file_system"], name_of(key) + mark]
    for column in _COLUMNS[scenario["kind"]]:
        spread = summary.values(scenario, key, column.take)
        least, greatest = column.form(spread.least), column.form(spread.greatest)
        cells += [column.form(spread.median), f"{least} - {greatest}"]
    if scenario["kind"] in _RATED:
        cells.append(tables.rate(1e9 / summary.nanos(scenario, key).median))
    return tuple(cells)


def name_of(key: str) -> str:
    """Return the name of an operation."""
    return _NAMES[key] if key in _NAMES else tables.full_name(key)
