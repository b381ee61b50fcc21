"""
How often each promise was put to the test, and the page that says so: docs/reliability.md.

A test of `tests/attack` takes its number of repetitions from `scaled` and leaves what it did with
the `tally` fixture. `make torture` runs them in full, then writes the page by running this file.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeAlias

from paths import ROOT

COUNTS = ROOT / "build" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN = "<!-- begin: written by `make torture` -->"
END = "<!-- end -->"

Tally: TypeAlias = Callable[[str, int, str], None]
"""`tally(promise, count, of_what)`."""

TORTURE = bool(os.environ.get("QUIRE_TORTURE"))


@dataclass(frozen=True)
class Count:
    """What one test did: so many times so many different things, and the promise they try."""

    promise: str
    test: str
    what: str
    count: int
    torture: bool
    date: str


def scaled(short: int, full: int) -> int:
    """Return *short* in `make check`, *full* in `make torture`."""
    return full if TORTURE else short


def leave(test: str, promise: str, count: int, what: str) -> None:
    """Store a test's count, and print it."""
    print(f"{count:,} {what}")  # noqa: T201 - the count is part of the test's report
    today = dt.datetime.now(dt.UTC).date().isoformat()
    found = Count(promise, test, what, count, TORTURE, today)
    COUNTS.mkdir(parents=True, exist_ok=True)
    name = f"{test}-{what}".translate(str.maketrans("/:[] ", "-----"))
    (COUNTS / f"{name}.json").write_text(json.dumps(asdict(found), indent=1) + "\n", "utf-8")


def write_page() -> None:
    """Write the counts into the page, between its two markers; cases of one test are added up."""
    rows: dict[tuple[str, str], list[Count]] = {}
    for path in COUNTS.glob("*.json"):
        count = Count(**json.loads(path.read_text("utf-8")))
        rows.setdefault((count.promise, count.test.split("[")[0]), []).append(count)
    lines = ["| Promise | Test | Latest count | Run |", "| --- | --- | --- | --- |"]
    for (promise, test), counts in sorted(rows.items()):
        sums = Counter[str]()
        for count in counts:
            sums[count.what] += count.count
        found = "; ".join(f"{number:,} {what}" for what, number in sums.most_common())
        kind = "torture" if all(count.torture for count in counts) else "test"
        run = f"{kind}, {max(count.date for count in counts)}"
        lines.append(f"| {promise} | `{test}` | {found} | {run} |")
    head, rest = PAGE.read_text("utf-8").split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text("\n".join([head + BEGIN, *lines, END + tail]), "utf-8")


if __name__ == "__main__":
    write_page()
