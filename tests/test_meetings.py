"""docs/meetings.md: every pair says what holds, and names tests that exist."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from paths import ROOT

pytestmark = pytest.mark.rule

PAGE = ROOT / "docs" / "meetings.md"
LEAST = 150  # pairs


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [cells for cells in found if cells[0] not in {"Pair", "---"}]


def test_no_cell_is_empty() -> None:
    assert len(rows()) > LEAST
    assert [cells for cells in rows() if len(cells) != 3 or not all(cells)] == []


def test_each_pair_is_there_once() -> None:
    assert [
        pair for pair, count in Counter(cells[0] for cells in rows()).items() if count > 1
    ] == []


def test_the_named_tests_exist() -> None:
    for pair, _, tests in rows():
        named = re.findall(r"`([\w/]+\.py)`", tests)
        assert named, pair
        assert tests == ", ".join(f"`{name}`" for name in named), pair
        missing = [name for name in named if not (ROOT / "tests" / name).is_file()]
        assert not missing, f"{pair}: docs/meetings.md names {missing}, which do not exist"
