"""What Chronicle Queue's documentation claims, row by row, beside what was measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench import summary, tables
from bench.claims import a_second, is_held, of_writer
from bench.harness import Result
from bench.replicated_scenarios import ACCEPTABLE, REPLICATION_RATES
from bench.scenarios import PACED_SIZES
from bench.summary import taking

_P99S = {10: ("0.78", "1.2"), 60: ("0.78", "1.3"), 100: ("1.2", "1.5")}
"""By million messages a minute: p99 and p99.9 in microseconds, on one machine."""
_REPLICATED = {"p99": "20", "p99.9": "901"}
"""In microseconds, on a second machine, at ten million messages a minute."""
_BUFFERED = {1024: ("90", "86"), 4096: ("691", "342")}
"""By size: the median append of the first writer in microseconds, double buffering off and on."""
_HELD = taking("rate")
_LATE = "< 40 us for 99 % to 99.99 %"


class Row(NamedTuple):
    """A claim and what was measured; what was not is empty."""

    what: str
    claim: str
    java: str
    quire: str


def text(results: dict[str, Result]) -> str:
    """Return the table; empty if nothing of it was measured."""
    rows = [row for make in _MAKES for row in make(results) if row.java or row.quire]
    head = ("", "claimed", "Java here", "Quire here")
    return tables.table(head, rows) if rows else ""


def _rates(results: dict[str, Result]) -> Iterator[Row]:
    of_size = {"file_system": "tmpfs", "size": 96}
    for part, what, java, ours in (
        ("append", "written", "chronicle.writingDocument", "quire.write_bytes"),
        ("tail", "read", "chronicle.tailing", "quire.payloads"),
    ):
        claim = "5 M/s" if part == "append" else "millions a second"
        found = _scenario(results, part, **of_size)
        cells = [_cell(found, key, taking("nanos"), _per_second) for key in (java, ours)]
        yield Row(f"messages of 96 B {what} by one thread", claim, *cells)


def _latencies(results: dict[str, Result]) -> Iterator[Row]:
    for millions, claims in _P99S.items():
        found = _scenario(results, "claims", kind="rates", rate=a_second(millions))
        for name, claim in zip(("p99", "p99.9"), claims, strict=True):
            take = taking("begin", name)
            java = _cell(found, "chronicle.latency", take, _us)
            ours = _cell(found, "quire.latency", take, _us)
            if ours and (many := _cell(found, "quire.batches", take, _us)):
                ours += f"; in batches {many}"
            yield Row(f"{name} of 40 B at {millions} M a minute", f"{claim} us", java, ours)
    found = _scenario(results, "claims", kind="rates", rate=a_second(60))
    take = taking("below", "20")
    cells = [_cell(found, f"{it}.latency", take, _share) for it in ("chronicle", "quire")]
    yield Row("below 20 us at a million a second", "1 to 20 us", *cells)
    cells = [_cell(found, f"{it}.latency", _HELD, _rate) for it in ("chronicle", "quire")]
    yield Row("held of a million a second, single appends", "over 1 M/s", *cells)
    found = _scenario(results, "latency", file_system="tmpfs", rate=100_000)
    take = taking("below", "40")
    cells = [_cell(found, f"{it}.latency", take, _share) for it in ("chronicle", "quire")]
    yield Row("below 40 us, 96 B at 100,000/s", _LATE, *cells)


def _services(results: dict[str, Result]) -> Iterator[Row]:
    found = _scenario(results, "claims", kind="services")
    for way in ("thread", "asleep"):
        where = "one thread" if way == "thread" else "three processes"
        share = _cell(found, f"quire.services@{way}", taking("below", "40"), _share)
        yield Row(f"below 40 us, end to end, three services in {where}", _LATE, "", share)


def _replication(results: dict[str, Result]) -> Iterator[Row]:
    keys = ("replicated_java.latency", "replicated.latency")
    found = _scenario(results, "replication", kind="latency", rate=REPLICATION_RATES[-1])
    for name, claim in _REPLICATED.items():
        cells = [_cell(found, key, taking("begin", name), _us) for key in keys]
        yield Row(f"{name} to a replica, 40 B at 10 M a minute", f"{claim} us", *cells)
    cells = [_cell(found, key, taking("below", "1000"), _share) for key in keys]
    yield Row("to a replica below 1 ms, at 10 M a minute", "99.9 %", *cells)
    for millions, (limit, share) in ACCEPTABLE.items():
        found = _scenario(results, "replication", kind="acceptable", rate=a_second(millions))
        cells = [_cell(found, key, taking("below", limit), _share) for key in keys]
        what = f"to a replica below {limit} us, {millions} M a minute"
        yield Row(what, f"{share:.1%}", *cells)


def _writers(results: dict[str, Result]) -> Iterator[Row]:
    for size in PACED_SIZES:
        found = _scenario(results, "claims", kind="writers", size=size)
        for claim, java, ours, how in zip(
            _BUFFERED[size],
            ("writingDocument", "doubleBuffer"),
            ("document", "double_buffer"),
            ("off", "on"),
            strict=True,
        ):
            cells = [
                _cell(found, key, of_writer(0, "p50"), _us)
                for key in (f"chronicle.{java}", f"quire.{ours}")
            ]
            what = f"median append of {size:,} B, two writers at 10 kHz, double buffering {how}"
            yield Row(what, f"{claim} us", *cells)


def _kafka(results: dict[str, Result]) -> Iterator[Row]:
    """Say how many times Kafka's; Java's queue was not measured in the same rounds."""
    claim = "over 10 x"
    found = _scenario(results, "peers", kind="stream")
    if found and {"quire.stream", "kafka.stream"} <= {*summary.operations(found)}:
        times = summary.ratio(found, "quire.stream", "kafka.stream")
        reached = _times(times.median) + summary.mark(found)
        yield Row("rate to another process : Kafka's", claim, "", reached)
    for found in summary.scenarios(results, "claims"):
        if found["kind"] != "broker" or "kafka.latency" not in summary.operations(found):
            continue
        for name in ("p50", "p99"):
            ours, kafka = (
                summary.percentile(found, f"{it}.latency", "begin", name).median
                for it in ("quire", "kafka")
            )
            what = f"Kafka's {name} : ours, {found['rate']:,}/s"
            reached = f"{_times(kafka / ours)}: {_us(kafka)}, {_us(ours)}"
            yield Row(what, claim, "", reached + summary.mark(found))


def _scenario(results: dict[str, Result], part: str, **described: object) -> Result | None:
    """Return the first scenario of this description."""
    for one in summary.scenarios(results, part):
        if all(one.get(key) == value for key, value in described.items()):
            return one
    return None


def _cell(
    scenario: Result | None,
    key: str,
    take: Callable[[Result], float],
    form: Callable[[float], str],
) -> str:
    """
    Return the median; nothing if it was not measured.

    A rate that was not held stands behind it, and the mark of a busy machine.
    """
    if scenario is None or key not in summary.operations(scenario):
        return ""
    slower = ""
    if "rate" in scenario and take is not _HELD:
        held = summary.values(scenario, key, _HELD).median
        slower = "" if is_held(held, scenario) else f" at {_rate(held)}"
    return form(summary.values(scenario, key, take).median) + slower + summary.mark(scenario)


def _us(value: float) -> str:
    return f"{tables.microseconds(value)} us"


def _share(value: float) -> str:
    return f"{value:.2%}"


def _rate(value: float) -> str:
    return f"{tables.rate(value)}/s"


def _per_second(nanos: float) -> str:
    return _rate(1e9 / nanos)


def _times(value: float) -> str:
    return f"{value:,.1f} x"


_MAKES = (_rates, _latencies, _services, _replication, _writers, _kafka)
