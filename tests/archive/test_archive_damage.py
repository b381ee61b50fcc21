"""Finished cycles whose files can no longer be read: none is passed over without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from archives import FIRST_DAY, finished, rows
from cli_runs import Cli
from damages import age, empty, erase_marker, lose_header, lose_page
from quire import archive as archives


@pytest.mark.parametrize("damage", [empty, lose_header, lose_page])
def test_a_finished_cycle_that_is_not_ready_has_failed(
    path: Path, dest: Path, cli: Cli, damage: Callable[[Path], None]
) -> None:
    file = sorted(path.glob("*.cq4"))[1]
    damage(file)

    report = archives.archive(path, dest)

    assert [each.cycle for each in report.failed] == [FIRST_DAY + 1]
    assert file.name in report.failed[0].reason
    assert [each.cycle for each in report.entries] == [FIRST_DAY, FIRST_DAY + 2]
    assert cli("archive", path, dest).code == 1
    assert file.exists()


def test_a_missing_marker_costs_nothing(path: Path, dest: Path) -> None:
    for file in sorted(path.glob("*.cq4"))[:2]:
        erase_marker(file)
        age(file)

    report = archives.archive(path, dest, grace_s=0.0)

    assert report.is_complete
    assert rows(dest) == finished(path)
