"""A repair is killed at any of its steps; the next one ends in the same bytes.

The names of the steps are those of the kernel's `fault.rs`; docs/protocol.md §12.2 has those that
only a repair makes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import quire
from damages import fill
from fault_lives import Lives, points
from fault_peer import SIGKILL, sample
from journal_damages import DAMAGES, Damage
from paths import ROOT
from queues import copy_of
from tally import limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

LIFE = "repair_life.py"

DAYS, PER_DAY = 3, 40
# What changes a file; the other steps only look.
CHANGES = re.compile(r"\.(cas|store|write|rename|link|grow|discard|publish|zeros|sync|remove)\b")
EACH = scaled(1, 10**6)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("queues") / "whole"
    fill(path, DAYS, PER_DAY)
    return path


def content(path: Path) -> dict[str, bytes]:
    """Return the bytes of each roll file, and the table's values without its counter."""
    with quire.open(path, read_only=True) as queue:
        values = {key: value for key, value in queue.table_entries() if key != "listing.modCount"}
    files = {file.name: file.read_bytes().rstrip(b"\0") for file in path.glob("*.cq4")}
    return files | {"table": repr(values).encode()}


def test_the_steps_of_a_repair_are_described() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8").split("### 12.2")[1]
    assert set(re.findall(r"`(repair\.[\w.-]+)`", page)) == points("repair.")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_a_killed_repair_is_completed(
    lives: Lives, whole: Path, tmp_path: Path, damage: Damage
) -> None:
    undisturbed = copy_of(whole, tmp_path / "undisturbed")
    damage.do(undisturbed)
    hits = lives.live(undisturbed, "", "only").hits
    expected = content(undisturbed)
    for name in sorted(name for name in hits if CHANGES.search(name)):
        for nth in sample(name, hits[name], 2)[-EACH:]:
            path = copy_of(whole, tmp_path / f"{name}-{nth}")
            damage.do(path)
            died = lives.live(path, "", "first", f"{name}:{nth}:kill")
            assert died.exit == SIGKILL or nth > 1, (name, nth)
            assert lives.live(path, "", "second").exit == 0
            assert content(path) == expected, (name, nth)
            assert quire.verify(path).findings == (), (name, nth)
