"""
The plugin of pytest that makes `make torture` resume and add up.

Tests that leave a tally run, those that were tried least first. A test that passed is added to
tests/attack/tally.json at once, one that failed is noted there, to be explained.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tally import RUN, Tallies, Tried, commit, today

UNEXPLAINED = "not yet explained"


@dataclass(eq=False)  # pytest keeps plugins in sets
class Torture:
    """
    What one run of pytest tries and leaves.

    Attributes:
        ends_at: When no further test is started, on `time.monotonic`.
        left: What the test that runs has counted, and for which promise.

    """

    ends_at: float = field(
        default_factory=lambda: (
            time.monotonic() + 60 * float(os.environ.get("QUIRE_TORTURE_MINUTES") or "inf")
        )
    )
    promise: str = ""
    left: Counter[str] = field(default_factory=Counter[str])

    def leave(self, promise: str, count: int, what: str) -> None:
        """Count what the test that runs did."""
        self.promise = promise
        self.left[what] += count

    def pytest_sessionstart(self) -> None:
        """Count the run, and say how its seeds are had again."""
        found = Tallies.load()
        found.runs = max(found.runs, RUN + 1)
        found.store()
        print(f"QUIRE_TORTURE_RUN={RUN}")  # noqa: T201 - repeats the seeds of this run

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Function]
    ) -> None:
        """Leave the tests with a tally, those first that ran for the shortest time so far."""
        others = [item for item in items if "tally" not in item.fixturenames]
        config.hook.pytest_deselected(items=others)
        tests = Tallies.load().tests
        wanted = [item for item in items if "tally" in item.fixturenames]
        items[:] = sorted(wanted, key=lambda item: tests.get(item.nodeid, Tried()).seconds)

    def pytest_runtest_setup(self) -> None:
        """Start no test when the time is over."""
        self.left.clear()
        if time.monotonic() > self.ends_at:
            pytest.skip("the minutes are over; the next run begins here")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test that passed to what earlier runs did, and note one that failed."""
        if report.failed:
            found = Tallies.load()
            found.failures.append(
                {"test": report.nodeid, "commit": commit(), "date": today(), "became": UNEXPLAINED}
            )
            found.store()
        elif report.when == "call" and report.passed:
            found = Tallies.load()
            tried = found.tests.setdefault(report.nodeid, Tried())
            tried.promise = self.promise
            tried.add(report.duration, self.left)
            found.store()
