"""`quire groups`: lag, position and members of consumer groups, and their reset."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli
from queues import snapshot


@pytest.fixture
def last(path: Path) -> int:
    """Four messages, two of which the group `billing` acknowledged; the index of the last."""
    with quire.open(path) as queue, queue.appender() as appender:
        last = appender.write_many([b"a", b"b", b"c", b"d"])
        with queue.group("billing").consumer() as consumer:
            for message in consumer.read_many(2):
                assert message.ack()
    assert last is not None
    return last


def listed(cli: Cli, path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli.ok("groups", path, "--format", "jsonl").lines]


def test_groups_are_listed_and_nothing_changes(cli: Cli, path: Path, last: int) -> None:
    before = snapshot(path)
    (group,) = listed(cli, path)
    assert (group["name"], group["lag"], group["members"]) == ("billing", 2, "")
    assert (group["lowest_index"], group["next_index"]) == (f"{last - 1:#x}", f"{last - 1:#x}")
    assert snapshot(path) == before


def test_members_are_listed_with_pid_and_messages(cli: Cli, path: Path, last: int) -> None:
    with quire.open(path) as queue, queue.group("billing").consumer("c1") as consumer:
        message = consumer.read()
        assert message is not None
        assert message.index == last - 1
        (group,) = listed(cli, path)
    assert group["members"] == f"c1:{os.getpid()} 1"


@pytest.mark.parametrize(("target", "lag"), [("start", 4), ("end", 0), ("last", 1)])
def test_a_group_is_reset(cli: Cli, path: Path, last: int, target: str, lag: int) -> None:
    shown = cli.ok("groups", path, "--reset", "billing", str(last) if target == "last" else target)
    assert shown.out.startswith(f"reset: name=billing before={last - 1:#x} after=")
    assert [group["lag"] for group in listed(cli, path)] == [lag]


def test_what_cannot_be_reset_says_so(cli: Cli, path: Path, last: int) -> None:
    assert last
    assert (
        "no group has this name: name=other" in cli("groups", path, "--reset", "other", "end").err
    )
    wrong = cli("groups", path, "--reset", "billing", "2024-01-15")
    assert (wrong.code, "expected an index, 'start' or 'end'" in wrong.err) == (2, True)
    with quire.open(path) as queue, queue.group("billing").consumer():
        assert "the group has members" in cli("groups", path, "--reset", "billing", "end").err


def test_a_group_is_deleted(cli: Cli, path: Path, last: int) -> None:
    assert last
    refused = cli("groups", path, "--delete", "billing", "--reset", "billing", "start")
    assert refused.code == 2
    assert "exclude each other" in refused.err
    assert cli.ok("groups", path, "--delete", "billing").lines == ["deleted: name=billing"]
    assert listed(cli, path) == []
    unknown = cli("groups", path, "--delete", "billing")
    assert (unknown.code, "no group has this name: name=billing" in unknown.err) == (1, True)
