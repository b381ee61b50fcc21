"""
How often each promise was put to the test: tests/attack/tally.json, and docs/reliability.md.

A test that tries a promise many times takes the number from `scaled` and leaves what it did with
the `tally` fixture. `make torture` runs these tests in full and `make fuzz` its targets. What
passed is added at once to what earlier runs did: either may be stopped at any moment, and begins
the next time with what was tried least.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from paths import ROOT, TESTS

COUNTS = Path(os.environ.get("QUIRE_TALLY") or TESTS / "attack" / "tally.json")
PAGE = ROOT / "docs" / "reliability.md"
BEGIN = "<!-- begin: written by `make torture` and `make fuzz` -->"
END = "<!-- end -->"

Tally: TypeAlias = Callable[[str, int, str], None]
"""`tally(promise, count, of_what)`."""

SHARE = float(os.environ.get("QUIRE_TORTURE") or 0)
"""How much of each test in full `make torture` does; 0 in other runs."""

TORTURE = SHARE > 0


@dataclass
class Tried:
    """What all runs of one test, or of one target of `make fuzz`, did together."""

    promise: str = ""
    seconds: float = 0.0
    runs: int = 0
    commit: str = ""
    date: str = ""
    counts: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def when(self) -> str:
        """The day of the last run and what it ran on, which nobody noted before 27 November."""
        return f"{self.date}, {self.commit}" if self.commit else self.date

    def add(self, seconds: float, counts: Counter[str]) -> None:
        """Add a run at the current commit, today."""
        self.seconds = round(self.seconds + seconds, 1)
        self.runs += 1
        self.commit, self.date = commit(), today()
        self.counts = dict(Counter(self.counts) + counts)


@dataclass
class Tallies:
    """The file of counts."""

    tests: dict[str, Tried]
    targets: dict[str, Tried]
    failures: list[dict[str, str]]
    runs: int

    @classmethod
    def load(cls) -> Tallies:
        """Read the file, or start an empty one."""
        found: dict[str, Any] = json.loads(COUNTS.read_text("utf-8")) if COUNTS.exists() else {}
        return cls(
            {name: Tried(**tried) for name, tried in found.get("tests", {}).items()},
            {name: Tried(**tried) for name, tried in found.get("targets", {}).items()},
            found.get("failures", []),
            found.get("runs", 0),
        )

    def store(self) -> None:
        """Replace the file."""
        new = COUNTS.with_suffix(".new")
        new.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n", "utf-8")
        new.replace(COUNTS)


def today() -> str:
    """Return the date, as `2026-11-27`."""
    return dt.datetime.now(dt.UTC).date().isoformat()


def commit() -> str:
    """Return the commit that is tried."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def scaled(short: int, full: int) -> int:
    """Return *short* in `make check`, in `make torture` its share of *full*: a number or a step."""
    return max(round(full * SHARE), min(short, full)) if TORTURE else short


def limit_s(short: int, full: int) -> int:
    """Return after how many seconds a test counts as hanging; *full* is for `make torture`."""
    return full if TORTURE else short


def leave(promise: str, count: int, what: str) -> None:
    """Show what a test of `make check` did."""
    print(f"{promise}: {count:,} {what}")  # noqa: T201 - part of the test's report


RUN = int(os.environ.get("QUIRE_TORTURE_RUN") or Tallies.load().runs) if TORTURE else 0
"""How many runs of `make torture` there were: part of each seed, so that each tries new ones."""


def rows_of(tests: dict[str, Tried]) -> list[str]:
    """Return the table of promises; cases of one test are added up."""
    merged: dict[tuple[str, str], list[Tried]] = {}
    for name, tried in tests.items():
        merged.setdefault((tried.promise.rstrip("."), name.split("[")[0]), []).append(tried)
    lines = ["| Promise | Test | Tried | Time | Last |", "| --- | --- | --- | --- | --- |"]
    for (promise, test), cases in sorted(merged.items()):
        sums = sum((Counter(case.counts) for case in cases), Counter[str]())
        done = "; ".join(f"{number:,} {what}" for what, number in sums.most_common())
        last = max(cases, key=lambda case: (case.date, case.seconds))
        took = shown(sum(case.seconds for case in cases))
        lines.append(f"| {promise} | `{test}` | {done} | {took} | {last.when} |")
    return lines


def rows_of_targets(targets: dict[str, Tried]) -> list[str]:
    """Return the table of the targets of `make fuzz`."""
    lines = ["| Target | Inputs | Processor time | Last |", "| --- | --- | --- | --- |"]
    for name, tried in sorted(targets.items()):
        inputs, took = tried.counts["inputs"], shown(tried.seconds)
        lines.append(f"| `{name}` | {inputs:,} | {took} | {tried.when} |")
    return lines


def shown(seconds: float) -> str:
    """Return a length of time, as `2 h 05 min`, `5 min` or `12 s`; nothing if it is not known."""
    if not seconds:
        return ""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def write_page() -> None:
    """Write the counts into the page, between its two markers."""
    found = Tallies.load()
    torture = sum(tried.seconds for tried in found.tests.values())
    fuzz = sum(tried.seconds for tried in found.targets.values())
    failures = [
        f"- {it['date']}, {it['commit']}: `{it['test']}`: {it['became']}" for it in found.failures
    ]
    lines = [
        f"`make torture` ran for {shown(torture)}, `make fuzz` for {shown(fuzz)} (processor time).",
        "",
        *rows_of(found.tests),
        "",
        *rows_of_targets(found.targets),
        *(
            ["", "What failed in these runs, and what became of it:", "", *failures]
            if failures
            else []
        ),
    ]
    head, rest = PAGE.read_text("utf-8").split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text("\n".join([head + BEGIN, *lines, END + tail]), "utf-8")


if __name__ == "__main__":
    write_page()
