"""Verbs that read a queue to its end: without markers they show all, beside damage they fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_runs import Cli
from damages import (
    DAYS,
    PER_DAY,
    WHOLE,
    age,
    break_message,
    empty,
    erase_marker,
    fill,
    lose_header,
    spoil,
)

DAMAGES = [spoil, lose_header]


@pytest.fixture
def files(path: Path) -> list[Path]:
    return fill(path)


@pytest.fixture
def unmarked(files: list[Path]) -> list[Path]:
    """Files of which two lack their end-of-file markers, and were left alone for long."""
    for file in files[:2]:
        erase_marker(file)
        age(file)
    return files


def test_read_replay_and_diff_go_on_where_markers_are_missing(
    cli: Cli, path: Path, tmp_path: Path, unmarked: list[Path]
) -> None:
    assert unmarked
    read = cli("read", path, "--format", "jsonl")
    assert (read.code, [json.loads(line)["message"] for line in read.lines]) == (0, WHOLE)

    whole, copy = tmp_path / "whole", tmp_path / "copy"
    fill(whole)
    assert cli("replay", path, "--to-queue", copy).code == 0
    assert cli("read", copy, "--format", "jsonl").lines == read.lines
    assert cli("diff", path, copy).code == 0
    assert cli("diff", path, whole).code == 0
    assert cli("diff", whole, path, "--by", "index").code == 0


def test_a_file_that_was_emptied_is_named(
    cli: Cli, path: Path, files: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    empty(files[1])
    age(files[1])
    read = cli("read", path, "--format", "jsonl")
    left = WHOLE[:PER_DAY] + WHOLE[2 * PER_DAY :]
    assert [json.loads(line)["message"] for line in read.lines] == left
    assert files[1].name in caplog.text
    caplog.clear()
    assert cli("replay", path, "--to-queue", f"{path}-copy").code == 0
    assert files[1].name in caplog.text
    stat = cli("stat", path)
    assert (stat.code, files[1].name in stat.err) == (1, True)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_in_the_middle_is_an_error(
    cli: Cli, path: Path, tmp_path: Path, files: list[Path], damage: Callable[[Path], None]
) -> None:
    damage(files[1])
    fill(tmp_path / "whole")
    runs: list[list[str | Path]] = [
        ["read", path],
        ["replay", path, "--to-queue", tmp_path / "copy"],
        ["diff", path, tmp_path / "whole"],
    ]
    for arguments in runs:
        ran = cli(*arguments)
        assert ran.code != 0, arguments
        assert "corrupt file" in ran.err, arguments
        assert files[1].name in ran.err, arguments


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_last_messages_are_shown_beside_a_damaged_oldest_file(
    cli: Cli, path: Path, files: list[Path], damage: Callable[[Path], None]
) -> None:
    damage(files[0])
    read = cli("read", path, "--last", 3, "--format", "jsonl")
    assert (read.code, [json.loads(line)["message"] for line in read.lines]) == (0, WHOLE[-3:])
    start = json.loads(read.lines[0])["index"]
    assert cli("read", path, "--from", start, "--format", "jsonl").lines == read.lines
    assert len(WHOLE) == DAYS * PER_DAY


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--last", "3"], [24, 28, 29]),
        (["--last", "2"], [28, 29]),
        (["--last", "3", "--to", "0x4d1b00000009"], [23, 24, 28]),
        (["--from", "0x4d1b00000005"], [28, 29]),
        (["--from", "0x4d1b00000007", "--to", "0x4d1b00000009"], [28]),
        (["--metadata", "--from", "0x4d1b00000003"], [23, 24, 28, 29]),
    ],
)
def test_damage_is_skipped_wherever_reading_starts(
    cli: Cli, path: Path, options: list[str], expected: list[int]
) -> None:
    break_message(fill(path, 3, 10)[2], 5)  # the index leads to the message 8
    skip = ["--on-damage", "skip", "--no-index", "--format", "jsonl"]
    ran = cli("read", path, *skip, *options)
    found = [json.loads(line) for line in ran.lines]
    assert [it["n"] for it in found if isinstance(it, dict) and "n" in it] == expected
    is_met = expected[0] != 28 or "--from" in options
    assert (ran.code, "0x4d1b00000008 cannot be read" in ran.err) == (int(is_met), is_met)
    assert cli("read", path, "--last", "3").code == 1


def test_nothing_is_shown_from_damage_with_nothing_after_it(cli: Cli, path: Path) -> None:
    break_message(fill(path, 3, 10)[2], 9)
    skip = ["--on-damage", "skip", "--no-index", "--format", "jsonl"]
    ran = cli("read", path, *skip, "--from", "0x4d1b00000009")
    assert (ran.code, ran.out) == (1, "")
    assert "from 0x4d1b00000009 to before the end cannot be read" in ran.err
    ran = cli("read", path, *skip, "--last", "2")
    assert (ran.code, [json.loads(line)["n"] for line in ran.lines]) == (1, [27, 28])
