"""A writer of a Quick-Queue dies at any named step, or a system call of it fails.

The names are those of the kernel's `fault.rs`; what each leaves is in docs/quick-queue.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from errno import EIO
from pathlib import Path

import pytest

import quire
from fault_peer import BUILD, POINTS, sample
from paths import ROOT, SUPPORT
from quick_reference import QuickReference
from tally import scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(scaled(600, 7200))]

FORMS = ("single", "shared")
SIGKILL = -9


@dataclass(frozen=True)
class Life:
    """What a life said."""

    exit: int
    written: dict[int, str]
    hits: dict[str, int]
    failed: bool


class Lives:
    """A process of the build with fault points, which forks a child for each life."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SUPPORT / "quick_life.py")],
            env=os.environ | {"PYTHONPATH": str(BUILD)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def live(self, path: Path, form: str, name: str, fault: str = "") -> Life:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([str(path), form, name, fault]) + "\n")
        stdin.flush()
        code, said = json.loads(stdout.readline())
        hits: dict[str, int] = next((found for what, found in said if what == "hits"), {})
        written = {index: text for index, text in said if isinstance(index, int)}
        failed = [text for what, text in said if what == "failed"]
        assert code in {0, SIGKILL}, fault
        assert not failed or fault.endswith(str(EIO)), failed
        return Life(code, written, hits, bool(failed))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    lives = Lives()
    yield lives
    lives.close()


def points() -> list[str]:
    listed = POINTS.read_text("utf-8").split("POINTS: [&str; COUNT] = [")[1].split("];")[0]
    return re.findall(r'"(quick-queue\.[\w.-]+)"', listed)


def read(path: Path) -> dict[int, str]:
    """All messages, as Quire delivers them; the reference must agree."""
    with quire.open(path, format="quick-queue", read_only=True) as queue:
        assert isinstance(queue, quire.QuickQueue)
        found = {it.index: it.data.decode() for it in queue.tailer(on_dead="raise")}
    if found:
        reference = QuickReference(path).messages()
        assert found == {index: data.decode() for index, _, data in reference}
    return found


def check(path: Path, lives: list[Life]) -> None:
    """Nothing that was written is lost; at most one message of each life was not said yet."""
    found = read(path) if any(path.glob("*.q*")) else {}
    written = {index: text for life in lives for index, text in life.written.items()}
    assert {index: found.get(index) for index in written} == written
    assert len(found) <= len(written) + sum(life.exit != 0 or life.failed for life in lives)
    for text in found.values():
        assert len(set(re.findall(r"\w+ \d+ \d+ ", text))) == 1, text


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def hits(lives: Lives, form: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("undisturbed")
    lived = lives.live(path, form, "only")
    check(path, [lived])
    return {name: count for name, count in lived.hits.items() if count}


def test_every_point_is_hit_and_described(lives: Lives, tmp_path: Path) -> None:
    undisturbed = [lives.live(tmp_path / form, form, "only") for form in FORMS]
    met = {name for lived in undisturbed for name, count in lived.hits.items() if count}
    page = (ROOT / "docs" / "quick-queue.md").read_text("utf-8").split("## Fault points")[1]
    assert set(re.findall(r"`(quick-queue\.[\w.-]+)`", page)) == {*points()}
    # A producer's profile is looked at where one died, and a directory's stat where one exists.
    assert {*points()} - met == {"quick-queue.profile.read"}


def test_a_crash_at_any_point_loses_nothing(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path
) -> None:
    for name, count in hits.items():
        for nth in sample(name, count, scaled(3, 10**6)):
            path = tmp_path / f"{name}-{nth}"
            died = lives.live(path, form, "first", f"{name}:{nth}:kill")
            assert died.exit == SIGKILL, (name, nth)
            check(path, [died])
            check(path, [died, lives.live(path, form, "second")])


def test_a_call_that_fails_loses_nothing(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path
) -> None:
    calls: set[str] = set()
    for file in POINTS.parents[1].rglob("quick_queue/**/*.rs"):
        calls |= set(re.findall(r'fault::call!\(\s*"([\w.-]+)"', file.read_text("utf-8")))
    for name in sorted(calls & hits.keys()):
        for nth in sample(name, hits[name], scaled(3, 10**6)):
            path = tmp_path / f"{name}-{nth}"
            failed = lives.live(path, form, "first", f"{name}:{nth}:{EIO}")
            check(path, [failed])
            check(path, [failed, lives.live(path, form, "second")])
