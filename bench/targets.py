"""What the measurements are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench import (
    harness,
    life_targets,
    older_targets,
    replicated_targets,
    sealed_targets,
    served_targets,
    spark_targets,
    summary,
)
from bench.harness import Result
from bench.messages import SIZE as MESSAGE_SIZE
from bench.summary import CPU_TIME, TIME, Spread


class Ratio(NamedTuple):
    """The least ratio of two rates, ours to Java's, at some message sizes."""

    ours: str
    java: str
    least: dict[int, float]


RATIOS = [
    Ratio("write_bytes", "writingDocument", {40: 1.3, 96: 1.3}),
    Ratio("write_bytes", "writeBytes", {40: 1.0, 96: 1.0}),
    Ratio("write_many", "writingDocument", {40: 2.5, 1024: 1.0}),
    Ratio("write_batch", "writingDocument", {40: 3.0, 1024: 1.0}),
    Ratio("payloads", "tailing", {40: 0.7, 96: 0.7}),
    Ratio("read_many", "tailing", {40: 1.0, 96: 1.0}),
    Ratio("read_batch", "tailing", {40: 1.5, 96: 1.5}),
]
LEAST_RATES = [("quire.write_bytes", 96, 5e6), ("quire.columns", MESSAGE_SIZE, 5e6)]
MESSAGES = [
    ("method_write", "method-write", 1.0),
    ("method_read", "method-read", 0.8),
    ("columns", "method-read", 3.0),
    ("dump", "dump", 8.0),
]
"""The least ratio of two rates, ours to Java's."""
TOOLS = {"quire.where": 2e6, "quire.verify": 500e6}
"""The least rates, in messages and in bytes a second."""
TOOLS_AGAINST_JAVA = [("read", "ChronicleReaderMain", 5.0)]
"""The least ratio of two times, Java's to ours, of commands with their start."""
MOST_OF_JSONL = 2.0
"""The most ratio of two times of `quire read`, of csv and of text to jsonl."""
MOST_TOOLS_S = [
    ("quire.stat", "quire stat, 1,000 cycles", 0.3),
    ("quire.metrics", "quire metrics, 57 queues", 0.1),
]
"""The most time of a command, in seconds."""
PERCENTILES = ("p50", "p90", "p98", "p99", "p99.9")
CLAIM_PERCENTILES = ("p50", "p99", "p99.9")
WINDOW_PERCENTILES = ("p98", "p99")
APPEND_P99 = 0.25
"""Of Java's own, at most, on a tmpfs."""
MOST_GROWTH = 1.5
BUFFERING = {"document": "writingDocument", "double_buffer": "doubleBuffer"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was reached."""

    what: str
    place: str
    wanted: str
    reached: str
    by_cpu_time: str
    is_met: bool
    remark: str

    @property
    def text(self) -> str:
        """Say whether it is reached."""
        return ("reached" if self.is_met else "**missed**") + self.remark


def verdicts(results: dict[str, Result]) -> Iterator[Verdict]:
    """Hold what was measured against the targets."""
    for part, of_scenario in _OF_PART.items():
        for one in summary.scenarios(results, part):
            yield from of_scenario(one)


def _rates(scenario: Result) -> Iterator[Verdict]:
    size, keys = scenario["size"], summary.operations(scenario)
    for ours, java, least in RATIOS:
        pair = f"quire.{ours}", f"chronicle.{java}"
        if size in least and set(pair) <= set(keys):
            yield _ratio(scenario, pair, f"{ours} : {java}, {size} B", least[size])
    yield from _least_rates(scenario)


def _messages(scenario: Result) -> Iterator[Verdict]:
    for ours, java, least in MESSAGES:
        pair = f"quire.{ours}", f"chronicle.{java}"
        if set(pair) <= set(summary.operations(scenario)):
            of = f", {scenario['holds']}" if "holds" in scenario else ""
            yield _ratio(scenario, pair, f"{ours} : {java}{of}", least)
    yield from _least_rates(scenario)


def _older(scenario: Result) -> Iterator[Verdict]:
    measured, size = set(summary.operations(scenario)), scenario["size"]
    for ours, other, least in older_targets.RATIOS:
        if {ours, other} <= measured:
            yield _ratio(scenario, (ours, other), f"{ours} : {other}, {size} B", least)
    for key, of_size, per_second in older_targets.LEAST_RATES:
        if key in measured and of_size == size:
            yield _rate(scenario, key, f"{key}, {size} B", per_second)
    for short, long, what in older_targets.GROWN:
        if {short, long} <= measured:
            yield _at_most(scenario, what, summary.ratio(scenario, short, long), MOST_GROWTH)


def _tools(scenario: Result) -> Iterator[Verdict]:
    measured = set(summary.operations(scenario))
    for ours, java, least in TOOLS_AGAINST_JAVA:
        pair = f"quire.{ours}", f"chronicle.{java}"
        if set(pair) <= measured:
            yield _ratio(scenario, pair, f"quire {ours} : {java}", least)
    for style in ("csv", "text"):
        pair = f"quire.read@{style}", "quire.read@jsonl"
        if set(pair) <= measured:
            ratio = summary.ratio(scenario, *reversed(pair))
            yield _at_most(scenario, f"quire read, {style} : jsonl", ratio, MOST_OF_JSONL)
    for key in measured & {*TOOLS}:
        unit = "bytes" if key == "quire.verify" else "messages"
        yield _rate(scenario, key, f"quire {key.split('.')[1]}, {unit}", TOOLS[key])
    for key, what, most_s in MOST_TOOLS_S:
        if key in measured:
            found = summary.nanos(scenario, key)
            median, least, greatest = (
                it / 1e9 for it in (found.median, found.least, found.greatest)
            )
            yield Verdict(
                what,
                scenario["file_system"],
                f"at most {most_s} s",
                f"{median:.2f} s ({least:.2f} - {greatest:.2f})",
                f"{summary.nanos(scenario, key, CPU_TIME).median / 1e9:.2f} s",
                is_met=median <= most_s,
                remark=summary.mark(scenario),
            )


def _life(scenario: Result) -> Iterator[Verdict]:
    measured = set(summary.operations(scenario))
    for key, what, per_second in life_targets.LEAST_RATES:
        if key in measured:
            yield _rate(scenario, key, what, per_second)
    for ours, other, what, least in life_targets.RATIOS:
        if {ours, other} <= measured:
            yield _ratio(scenario, (ours, other), what, least)
    if {life_targets.WARM, life_targets.COLD} <= measured:
        for what, take in life_targets.SHARES.items():
            shares = life_targets.share(scenario, take)
            yield _at_most(scenario, what, shares, life_targets.MOST_OF_COLD)
    for most in life_targets.MOST:
        yield from _most(scenario, most)


def _most(scenario: Result, most: life_targets.Most) -> Iterator[Verdict]:
    """Hold what was found in the runs of an operation against a limit, if it was measured."""
    if {most.key, most.less} - {""} <= set(summary.operations(scenario)):
        spread = life_targets.spread(scenario, most)
        yield Verdict(
            most.what,
            scenario["file_system"],
            f"at most {most.limit:g}{most.unit}",
            _spread(spread, most.unit),
            "",
            is_met=spread.median <= most.limit,
            remark=summary.mark(scenario),
        )


def _replication(scenario: Result) -> Iterator[Verdict]:
    measured = set(summary.operations(scenario))
    for key, what, per_second in replicated_targets.LEAST_RATES:
        if key in measured:
            yield _rate(scenario, key, what, per_second)
    alone, replicated = replicated_targets.ALONE, replicated_targets.REPLICATED
    if {alone, replicated} <= measured:
        more = summary.ratio(scenario, alone, replicated, CPU_TIME)
        what = "replicate: CPU time of the appender's thread"
        yield _at_most(scenario, what, more, replicated_targets.MOST_COST)
    synced, waiting = replicated_targets.SYNCING, replicated_targets.WAITING
    if {synced, waiting} <= measured:
        what = "replicate: an append that waits for a replica, against one for the disk"
        yield _at_most(scenario, what, summary.ratio(scenario, synced, waiting), 1.0)
    for peer in replicated_targets.PEERS:
        pair = replicated_targets.OURS, f"{peer}.latency"
        if set(pair) <= measured:
            yield from _replicated_before(scenario, *pair, harness.adapter(peer).NAME)


def _replicated_before(scenario: Result, ours: str, theirs: str, name: str) -> Iterator[Verdict]:
    for percentile in replicated_targets.PERCENTILES:
        here, there = (
            summary.percentile(scenario, key, "begin", percentile) for key in (ours, theirs)
        )
        yield Verdict(
            f"replicate: {percentile} at {scenario['rate']:,}/s, {name}",
            scenario["file_system"],
            f"at most {there.median:,.2f} us",
            _spread(here, " us"),
            "",
            is_met=here.median <= there.median,
            remark=summary.mark(scenario),
        )


def _least_rates(scenario: Result) -> Iterator[Verdict]:
    for key, size, per_second in LEAST_RATES:
        if size != scenario["size"] or key not in summary.operations(scenario):
            continue
        yield _rate(scenario, key, f"{key.split('.')[1]}, {size} B", per_second)


def _rate(scenario: Result, key: str, what: str, per_second: float) -> Verdict:
    """Hold a rate against the least wanted."""
    spread = summary.nanos(scenario, key)
    return Verdict(
        what,
        scenario["file_system"],
        f"{per_second / 1e6:.3g} M/s",
        f"{1e3 / spread.median:.2f} M/s ({1e3 / spread.greatest:.2f} - {1e3 / spread.least:.2f})",
        f"{1e3 / summary.nanos(scenario, key, CPU_TIME).median:.2f} M/s",
        is_met=1e9 / spread.median >= per_second,
        remark=summary.mark(scenario),
    )


def _ratio(scenario: Result, pair: tuple[str, str], what: str, least: float) -> Verdict:
    """Hold the ratio of two rates, by time and by CPU time, against the least wanted."""
    time, cpu_time = (summary.ratio(scenario, *pair, clock) for clock in (TIME, CPU_TIME))
    by_time, by_cpu_time = (one.median >= least for one in (time, cpu_time))
    remark = ""
    if by_time != by_cpu_time:
        remark = ", not by CPU time" if by_time else ", but by CPU time"
    if time.least < least <= time.greatest:
        remark += ", rounds differ"
    return Verdict(
        what,
        scenario["file_system"],
        f"{least:.1f} x",
        _spread(time, " x"),
        _spread(cpu_time, " x"),
        is_met=by_time,
        remark=remark + summary.mark(scenario),
    )


LATENCIES = {"begin": "latency", "windows": "latency in windows", "append": "append call"}


def _latency(scenario: Result) -> Iterator[Verdict]:
    java = "chronicle.latency"
    present = set(summary.operations(scenario))
    for ours in ("quire.latency", "quire.spin"):
        if {ours, java} <= present:
            yield from _latency_of(scenario, ours, java)


def _latency_of(scenario: Result, ours: str, java: str) -> Iterator[Verdict]:
    rate = f"{scenario['rate']:,}/s"
    wanted = [("begin", name, 1.0) for name in PERCENTILES]
    wanted += [("windows", name, 1.0) for name in WINDOW_PERCENTILES]
    if scenario["file_system"] == "tmpfs":
        wanted.append(("append", "p99", APPEND_P99))
    how = ", spin" if ours == "quire.spin" else ""
    for since, name, most in wanted:
        both = [summary.percentile(scenario, key, since, name) for key in (ours, java)]
        yield _before_java(scenario, f"{LATENCIES[since]} {name}{how}, {rate}", both, most)
    quiet = [summary.without_preemption(scenario, key) for key in (ours, java)]
    if all(quiet):
        both = [Spread.of([run["begin"]["p99.9"] for run in runs]) for runs in quiet]
        yield _before_java(scenario, f"latency p99.9 without preemption{how}, {rate}", both)


def _before_java(scenario: Result, what: str, both: Sequence[Spread], most: float = 1.0) -> Verdict:
    """Hold microseconds of ours against those of Java, or a part of them."""
    here, there = both
    limit = "Java's" if most == 1 else f"{most:.2f} x Java's"
    return Verdict(
        what,
        scenario["file_system"],
        f"at most {limit} {there.median:,.2f} us",
        _spread(here, " us"),
        "",
        is_met=here.median <= most * there.median,
        remark=summary.mark(scenario),
    )


def _claims(scenario: Result) -> Iterator[Verdict]:
    """Hold latencies against Java's."""
    keys = ("quire.latency", "chronicle.latency")
    if not set(keys) <= set(summary.operations(scenario)):
        return
    for name in CLAIM_PERCENTILES:
        both = [summary.percentile(scenario, key, "begin", name) for key in keys]
        what = f"latency {name}, {scenario['size']:,} B, {scenario['rate']:,}/s"
        yield _before_java(scenario, what, both)


def _contention(scenario: Result) -> Iterator[Verdict]:
    """Hold rate and fairness against the better of Java's two calls."""
    ours, writers, size = "quire.write_bytes", scenario["writers"], scenario["size"]
    javas = [key for key in summary.operations(scenario) if key.startswith("chronicle.")]
    if not javas:
        return
    best = min(javas, key=lambda key: summary.ratio(scenario, ours, key).median)
    name = best.split(".")[1]
    yield _ratio(scenario, (ours, best), f"write_bytes : {name}, {size} B, writers: {writers}", 1.0)
    if writers == 1:
        return
    spreads = {key: summary.values(scenario, key, lambda run: run["fairness"]) for key in javas}
    fairest = max(spread.median for spread in spreads.values())
    here = summary.values(scenario, ours, lambda run: run["fairness"])
    yield Verdict(
        f"fairness, {size} B, writers: {writers}",
        scenario["file_system"],
        f"Java's {fairest:.2f}",
        _spread(here, ""),
        "",
        is_met=round(here.median, 2) >= round(fairest, 2),
        remark=summary.mark(scenario),
    )


def _buffering(scenario: Result) -> Iterator[Verdict]:
    for ours, java in BUFFERING.items():
        pair = f"quire.{ours}", f"chronicle.{java}"
        if set(pair) <= set(summary.operations(scenario)):
            what = f"{ours} : {java}, {scenario['size']} B, writers: {scenario['writers']}"
            yield _ratio(scenario, pair, what, 1.0)


def _spark(scenario: Result) -> Iterator[Verdict]:
    """Hold the rates against numbers, and against what Spark does by itself."""
    present = summary.operations(scenario)
    for key in present:
        name = f"Spark: {key.split('.', 1)[1]}"
        if key in spark_targets.RATES:
            yield _rate(scenario, key, name, spark_targets.RATES[key])
        base = spark_targets.BASES.get(key)
        if key in spark_targets.RATIOS and base in present:
            what = f"{name} : {base.split('.', 1)[1]}"
            yield _ratio(scenario, (key, base), what, spark_targets.RATIOS[key])
    if scenario["kind"] == "memory":
        what = "Spark: a worker's memory, ten times the messages"
        yield _at_most(scenario, what, spark_targets.growth(scenario), spark_targets.MOST_MEMORY)
    if {"quire.trigger", "spark.rate"} <= set(present):
        what = "Spark: a trigger around its batch : rate source"
        yield _at_most(scenario, what, spark_targets.around(scenario), spark_targets.MOST_AROUND)


def _at_most(scenario: Result, what: str, found: Spread, most: float) -> Verdict:
    return Verdict(
        what,
        scenario["file_system"],
        f"at most {most:.2f} x",
        _spread(found, " x"),
        "",
        is_met=found.median <= most,
        remark=summary.mark(scenario),
    )


def _sealed(scenario: Result) -> Iterator[Verdict]:
    measured, wanted = set(summary.operations(scenario)), sealed_targets
    if {wanted.PLAIN, wanted.ENCRYPTED, wanted.CIPHER} <= measured:
        what = "what encryption adds to an append : the cipher alone"
        share = wanted.share_of_cipher(scenario)
        yield _at_most(scenario, what, share, wanted.MOST_OF_CIPHER)
    if wanted.CYCLES in measured:
        what = "read from compressed cycles"
        yield _rate(scenario, wanted.CYCLES, what, wanted.LEAST_FROM_CYCLES)


def _serve(scenario: Result) -> Iterator[Verdict]:
    measured, wanted = set(summary.operations(scenario)), served_targets
    for ours, other, what, least in wanted.RATIOS:
        if {ours, other} <= measured:
            yield _ratio(scenario, (ours, other), what, least)
    for key, what, per_second in wanted.LEAST_RATES:
        if key in measured:
            yield _rate(scenario, key, what, per_second)
    for ours, other, what in wanted.CALLS:
        if {ours, other} <= measured:
            times = summary.ratio(scenario, other, ours)
            yield _at_most(scenario, what, times, wanted.MOST_OF_REDIS)
    for most in wanted.MOST:
        yield from _most(scenario, most)
    if {wanted.FLIGHT, wanted.LOOPBACK} <= measured:
        share = wanted.share_of_flight(scenario)
        yield Verdict(
            f"serve: DoGet : {wanted.LEAST_GB:g} GB/s, or what the loopback does",
            scenario["file_system"],
            "1.0 x",
            _spread(share, " x"),
            "",
            is_met=share.median >= 1,
            remark=summary.mark(scenario),
        )


def _growth(scenario: Result) -> Iterator[Verdict]:
    small, large = scenario["amounts"]
    for name in scenario["names"]:
        grown = growth(scenario, "quire", name)
        yield Verdict(
            f"{name}, from {small:,} to {large:,} {scenario['kind']}",
            scenario["file_system"],
            f"at most {MOST_GROWTH:.1f} x",
            _spread(grown, " x"),
            f"{growth(scenario, 'quire', name, CPU_TIME).median:.2f} x",
            is_met=grown.median <= MOST_GROWTH,
            remark=summary.mark(scenario),
        )


def growth(scenario: Result, system: str, name: str, clock: str = TIME) -> Spread:
    """Return how many times as much it costs in the larger queue."""
    small, large = (f"{system}.{name}@{amount}" for amount in scenario["amounts"])
    return summary.ratio(scenario, small, large, clock)


def _spread(spread: Spread, unit: str) -> str:
    return f"{spread.median:,.2f}{unit} ({spread.least:,.2f} - {spread.greatest:,.2f})"


_OF_PART: dict[str, Callable[[Result], Iterator[Verdict]]] = {
    "append": _rates,
    "tail": _rates,
    "latency": _latency,
    "contention": _contention,
    "buffering": _buffering,
    "claims": _claims,
    "growth": _growth,
    "messages": _messages,
    "older": _older,
    "tools": _tools,
    "life": _life,
    "replication": _replication,
    "sealed": _sealed,
    "serve": _serve,
    "spark": _spark,
}
