"""Where Java is ahead, in everything that was measured of both."""

from __future__ import annotations

from collections.abc import Iterator

from bench import claims, life_tables, older_targets, replicated_targets, summary, tables
from bench.harness import Result
from bench.targets import BUFFERING, LATENCIES, PERCENTILES, growth

_SYSTEMS = ("quire", "chronicle")
_CONTENDING = [
    ("write_bytes", "writingDocument"),
    ("write_bytes", "writeBytes"),
    *BUFFERING.items(),
]
_PACED = [
    ("quire.paced", "chronicle.paced"),
    ("quire.paced@pretoucher", "chronicle.paced@micro_touch"),
]
_PACED_FOR = {
    "window max, us": summary.taking("windows", "max"),
    "page faults a million": summary.taking("faults"),
}


def losses(results: dict[str, Result]) -> Iterator[str]:
    """Say in which measurements Java was ahead, by time or by CPU time."""
    for part in ("append", "tail", "messages"):
        for one in summary.scenarios(results, part):
            yield from _rates(one, part)
    for one in summary.scenarios(results, "older"):
        for ours, other, _ in older_targets.RATIOS:
            if other.startswith(("vanilla_java.", "quick_queue_java.")):
                yield from _slower(one, ours, other, f"{one['size']} B")
    for part, of_scenario in _OF_PART.items():
        for one in summary.scenarios(results, part):
            yield from of_scenario(one)


def _rates(scenario: Result, part: str) -> Iterator[str]:
    where = f"{scenario['size']} B"
    for key in sorted(summary.operations(scenario), key=tables.place_of):
        if key.startswith("quire."):
            yield from _slower(scenario, key, tables.BASE[scenario.get("kind", part)], where)
    if part == "append":
        yield from _slower(scenario, "quire.write_bytes", "chronicle.writeBytes", where)


def _contending(scenario: Result) -> Iterator[str]:
    where = f"{scenario['size']} B, writers: {scenario['writers']}"
    for ours, java in _CONTENDING:
        yield from _slower(scenario, f"quire.{ours}", f"chronicle.{java}", where)


def _slower(scenario: Result, ours: str, java: str, where: str) -> Iterator[str]:
    if not {ours, java} <= set(summary.operations(scenario)):
        return
    clocks = (summary.TIME, summary.CPU_TIME)
    by_time, by_cpu_time = (summary.ratio(scenario, ours, java, it).median for it in clocks)
    if min(by_time, by_cpu_time) < 1:
        name, than = (key.split(".", 1)[1].split("@")[0] for key in (ours, java))
        yield (
            f"{name}, {where} on {scenario['file_system']}: {by_time:.2f} x Java's {than} by time, "
            f"{by_cpu_time:.2f} x by CPU time"
        )


def _later(scenario: Result) -> Iterator[str]:
    keys = ("quire.latency", "chronicle.latency")
    if not set(keys) <= set(summary.operations(scenario)):
        return
    for since, what in LATENCIES.items():
        for name in PERCENTILES:
            ours, java = (summary.percentile(scenario, key, since, name).median for key in keys)
            if ours > java:
                yield (
                    f"{what} {name}, {scenario['size']:,} B at {scenario['rate']:,}/s on "
                    f"{scenario['file_system']}: {tables.microseconds(ours)} us, "
                    f"Java {tables.microseconds(java)} us"
                )


def _claimed(scenario: Result) -> Iterator[str]:
    if "rate" in scenario:
        yield from _later(scenario)
    for ours, java in BUFFERING.items() if scenario["kind"] == "writers" else ():
        keys = (f"quire.{ours}", f"chronicle.{java}")
        if not set(keys) <= set(summary.operations(scenario)):
            continue
        for writer in range(claims.WRITERS):
            for name in claims.WRITER_PERCENTILES:
                take = claims.of_writer(writer, name)
                here, there = (summary.values(scenario, key, take).median for key in keys)
                if here > there:
                    yield (
                        f"{ours}, {scenario['size']:,} B, writer {writer + 1} of two at a rate, "
                        f"{name}: {tables.microseconds(here)} us, "
                        f"Java {tables.microseconds(there)} us"
                    )


def _replicated(scenario: Result) -> Iterator[str]:
    keys = (replicated_targets.OURS, "replicated_java.latency")
    if not set(keys) <= set(summary.operations(scenario)):
        return
    for name in replicated_targets.PERCENTILES:
        ours, java = (summary.percentile(scenario, key, "begin", name).median for key in keys)
        if ours > java:
            yield (
                f"replication {name} at {scenario['rate']:,}/s on {scenario['file_system']}: "
                f"{tables.microseconds(ours)} us, Java {tables.microseconds(java)} us"
            )


def _paced(scenario: Result) -> Iterator[str]:
    for ours, java in _PACED:
        if not {ours, java} <= set(summary.operations(scenario)):
            continue
        for what, take in _PACED_FOR.items():
            here, there = (summary.values(scenario, key, take).median for key in (ours, java))
            if here > there:
                yield (
                    f"{life_tables.name_of(ours)} at 100,000/s on {scenario['file_system']}, "
                    f"{what}: {tables.microseconds(here)}, {life_tables.name_of(java)} "
                    f"{tables.microseconds(there)}"
                )


def _aged(scenario: Result) -> Iterator[str]:
    if not any(key.startswith("chronicle.") for key in summary.operations(scenario)):
        return
    for name in scenario["names"]:
        for amount in scenario["amounts"]:
            where = f"at {amount:,} {scenario['kind']}"
            ours, java = (f"{system}.{name}@{amount}" for system in _SYSTEMS)
            yield from _slower(scenario, ours, java, where)
        here, there = (growth(scenario, system, name).median for system in _SYSTEMS)
        if here > there:
            yield f"{name} grows {here:.2f} x with {scenario['kind']}, Java's {there:.2f} x"


_OF_PART = {
    "latency": _later,
    "claims": _claimed,
    "contention": _contending,
    "buffering": _contending,
    "growth": _aged,
    "life": _paced,
    "replication": _replicated,
}
