"""A writer of a Quick-Queue dies at any named step, or a system call of it fails.

The names are those of the kernel's `fault.rs`; what each leaves is in docs/quick-queue.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from fault_lives import Life, Lives, check_written, crash_at_each, fail_each, points
from fault_peer import BUILD
from paths import ROOT
from quick_reference import QuickReference
from tally import Tally, limit_s

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

LIFE = "quick_life.py"
FORMS = ("single", "shared")
PREFIX = "quick-queue."

PROMISE = "A crash or error at any step of a Quick-Queue loses, repeats and invents nothing"


def read(path: Path) -> dict[int, str]:
    """All messages, as Quire delivers them; the reference must agree."""
    with quire.open(path, format="quick-queue", read_only=True) as queue:
        assert isinstance(queue, quire.quick_queue.QuickQueue)
        found = {it.index: it.data.decode() for it in queue.tailer(on_dead="raise")}
    if found:
        reference = QuickReference(path).messages()
        assert found == {index: data.decode() for index, _, data in reference}
    return found


def check(path: Path, lives: list[Life]) -> None:
    check_written(read(path) if any(path.glob("*.q*")) else {}, lives)


@pytest.fixture(scope="module")
def hits(lives: Lives, form: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("undisturbed")
    lived = lives.live(path, form, "only")
    check(path, [lived])
    return {name: count for name, count in lived.hits.items() if name.startswith(PREFIX)}


def test_every_point_is_hit_and_described(lives: Lives, tmp_path: Path) -> None:
    undisturbed = [lives.live(tmp_path / form, form, "only") for form in FORMS]
    met = {name for lived in undisturbed for name in lived.hits}
    page = (ROOT / "docs" / "quick-queue.md").read_text("utf-8").split("## Fault points")[1]
    assert set(re.findall(r"`(quick-queue\.[\w.-]+)`", page)) == points(PREFIX)
    # A producer's profile is looked at where one died, and a directory's stat where one exists.
    assert points(PREFIX) - met == {"quick-queue.profile.read"}


def test_a_crash_at_any_point_loses_nothing(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    crashes = crash_at_each(lives, form, hits, tmp_path, check)
    tally(PROMISE, crashes, "crashes")


def test_a_call_that_fails_loses_nothing(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    failures = fail_each(lives, form, hits, tmp_path, check)
    tally(PROMISE, failures, "calls that failed")


COUNT_CALLS = """
import sys
import quire, quire._native as native

path, producer = sys.argv[1], sys.argv[2] or None
native.set_fault("")
with quire.open(path, format="quick-queue") as queue, queue.appender(producer) as appender:
    assert queue.last_index is not None
    with queue.tailer(start=queue.last_index) as tailer:
        assert tailer.read_bytes() == b"last"
hits = dict(native.fault_hits())
print(sum(hits.values()), hits["quick-queue.dir.read"])
"""


@pytest.mark.parametrize("producer", ["", "AA0"])
def test_opening_lists_no_directory_of_many_pages(producer: str, tmp_path: Path) -> None:
    few, listings_of_few = calls_of_opening(tmp_path / "few", producer, 100)
    many, listings_of_many = calls_of_opening(tmp_path / "many", producer, 1000)
    assert listings_of_few == listings_of_many == 0
    # Halving takes some more looks.
    assert few < many < few + 100


def calls_of_opening(path: Path, producer: str, pages: int) -> tuple[int, int]:
    with (
        quire.quick_queue.open(path, page_bytes=64) as queue,
        queue.appender(producer or None) as appender,
    ):
        appender.write_many([b"message"] * (4 * (pages - 1)))
        appender.write_bytes(b"last")
    run = [sys.executable, "-W", "ignore", "-c", COUNT_CALLS, str(path), producer]
    environment = os.environ | {"PYTHONPATH": str(BUILD)}
    said = subprocess.run(run, env=environment, check=True, capture_output=True).stdout
    calls, listings = said.split()
    return int(calls), int(listings)
