"""A writer of a Vanilla Chronicle dies at any named step, or a system call of it fails.

The names are those of the kernel's `fault.rs`; what each leaves is in docs/vanilla.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import quire
import vanilla_reference as reference
from fault_lives import Life, Lives, check_written, crash_at_each, fail_each, points
from paths import ROOT
from tally import Tally, limit_s
from vanilla_life import DATA_BYTES, ENTRIES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

LIFE = "vanilla_life.py"
FORMS = ("asynchronous", "synchronous")

PROMISE = "A crash or error at any step of a Vanilla Chronicle loses, repeats and invents nothing"


def read(path: Path) -> dict[int, str]:
    """All messages, as Quire delivers them; the reference must agree."""
    for obstacle in path.glob("*/index-*"):
        if obstacle.is_dir():
            obstacle.rmdir()
    if not any(path.glob("*/index-*")):
        return {}
    with quire.open(path, format="vanilla", read_only=True) as queue:
        found = {it.index: it.data.decode() for it in queue.tailer()}
        folders = {cycle: Path(queue.directory_for_cycle(cycle)) for cycle in queue.cycles}
        bits = (queue.entries_per_cycle - 1).bit_length()
    texts = [
        (index, data.decode())
        for cycle, folder in folders.items()
        for index, data in reference.messages(folder, cycle, geometry(bits))
    ]
    assert [*found.items()] == texts
    return found


def geometry(sequence_bits: int) -> reference.Geometry:
    """A thread id has as many bits as this machine's greatest, 16 at least."""
    greatest = int(Path("/proc/sys/kernel/pid_max").read_text("ascii")) - 1
    return reference.Geometry(
        max(greatest.bit_length(), 16), 8 * ENTRIES, DATA_BYTES, sequence_bits
    )


def check(path: Path, lives: list[Life]) -> None:
    """Nothing is lost, and after a life that came to its end the named reader has read all."""
    found = read(path)
    check_written(found, lives)
    if not lives[-1].is_cut_short:
        assert set(found.values()) <= {text for life in lives for text in life.read}


@pytest.fixture(scope="module")
def hits(lives: Lives, form: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("undisturbed")
    lived = lives.live(path, form, "only")
    check(path, [lived])
    return lived.hits


def test_every_point_is_hit_and_described(lives: Lives, tmp_path: Path) -> None:
    undisturbed = [lives.live(tmp_path / form / "queue", form, "only") for form in FORMS]
    met = {name for lived in undisturbed for name in lived.hits}
    page = (ROOT / "docs" / "vanilla.md").read_text("utf-8").split("Fault points\n")[1]
    assert set(re.findall(r"`(vanilla\.[\w.-]+)`", page)) == points("vanilla.")
    # Only a reader with messages to come in three earlier cycles: vanilla/test_late_cycles.py.
    assert points("vanilla.") - met <= {"vanilla.position.further.store"}


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
