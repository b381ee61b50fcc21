"""``quire read --java``: orders and numbers as Java's reader has them (java/test_cli_tools.py)."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

import quire
from cli_runs import Cli

COUNT = 9


class FromFour:
    """A comparator, as `-b` takes one: records from size 4 on."""

    def __call__(self, excerpt: quire.Excerpt) -> int:
        return int(excerpt.to_dict()["size"]) - 4


@pytest.fixture
def indexes(path: Path, appender: quire.JournalAppender) -> list[int]:
    del path
    return [appender.write_map({"size": number}) for number in range(COUNT)]


def sizes(cli: Cli, path: Path, *options: str | int) -> list[int]:
    ran = cli.ok("read", "--java", "-d", path, *options)
    return [int(it) for it in re.findall(r"size: (\d)", ran.out)]


def test_backward_it_begins_at_the_index(cli: Cli, path: Path, indexes: list[int]) -> None:
    assert sizes(cli, path, "-k", "-n", hex(indexes[3])) == [3, 2, 1, 0]
    assert sizes(cli, path, "-k", "-n", hex(indexes[3]), "-x", 2) == [3, 2]
    assert sizes(cli, path, "-k", "-b", f"{__name__}:FromFour") == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("options", [["-m", 3], ["-f"]])
def test_backward_it_shows_all(
    cli: Cli, path: Path, indexes: list[int], options: list[str | int]
) -> None:
    assert sizes(cli, path, "-k", *options) == [*range(len(indexes))][::-1]


def test_the_last_ones_are_those_of_all(cli: Cli, path: Path, indexes: list[int]) -> None:
    del indexes
    assert sizes(cli, path, "-m", 3, "-i", "size: [1-6]") == [6]


@quire.message(alias="CliDeparture")
@dataclass
class Departure:
    at: datetime
    others: list[datetime]


class Flights(Protocol):
    def departed(self, at: datetime, departure: Departure) -> None: ...


def test_times_of_calls_are_shown_in_the_local_zone(
    cli: Cli, path: Path, appender: quire.JournalAppender, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
    appender.method_writer(Flights).departed(at, Departure(at, [at]))
    command = ("read", "--java", "-d", path, "-r", f"{__name__}:Flights")
    assert cli.ok(*command).out.count("2024-01-15T10:30") == 3
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert cli.ok(*command, "-z").out.count("2024-01-15T19:30+09:00") == 3
    finally:
        monkeypatch.undo()
        time.tzset()
