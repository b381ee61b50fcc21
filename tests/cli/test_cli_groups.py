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
    assert (group["name"], group["lag"], group["members"]) == ("billing", 2, [])
    assert (group["lowest_index"], group["next_index"]) == (f"{last - 1:#x}", f"{last - 1:#x}")
    assert snapshot(path) == before


def test_members_are_listed_with_pid_and_messages(cli: Cli, path: Path, last: int) -> None:
    with quire.open(path) as queue, queue.group("billing").consumer("c1") as consumer:
        message = consumer.read()
        assert message is not None
        assert message.index == last - 1
        (group,) = listed(cli, path)
        assert f"c1:{os.getpid()} 1" in cli.ok("groups", path).out
    assert group["members"] == [{"name": "c1", "pid": os.getpid(), "messages": 1}]
    assert (group["pending"], 0 <= group["oldest_s"] < 60) == (1, True)


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
    wrong = cli("groups", path, "--reset", "billing", "yesterday")
    assert (wrong.code, "is neither an index" in wrong.err) == (2, True)
    inside = cli("groups", path, "--reset", "billing", "2024-01-15T10:00", "--time-field", "at")
    assert (inside.code, "at" in inside.err) == (2, True)
    with quire.open(path) as queue, queue.group("billing").consumer():
        assert "the group has members" in cli("groups", path, "--reset", "billing", "end").err


def test_a_group_is_deleted(cli: Cli, path: Path, last: int) -> None:
    assert last
    refused = cli("groups", path, "--delete", "billing", "--reset", "billing", "start")
    assert refused.code == 2
    assert "--reset and --delete exclude each other" in refused.err
    assert cli.ok("groups", path, "--delete", "billing").lines == ["deleted: name=billing"]
    assert listed(cli, path) == []
    unknown = cli("groups", path, "--delete", "billing")
    assert (unknown.code, "no group has this name: name=billing" in unknown.err) == (1, True)


def test_a_group_is_reset_to_a_time(cli: Cli, path: Path, last: int) -> None:
    assert last
    cli.ok("groups", path, "--reset", "billing", "2000-01-01T00:00:00Z", "--format", "json")
    assert [group["lag"] for group in listed(cli, path)] == [4]


def test_pending_messages_are_listed_extended_and_released(cli: Cli, path: Path, last: int) -> None:
    with quire.open(path) as queue:
        with queue.group("billing", ack_timeout_s=60.0).consumer("c1") as consumer:
            message = consumer.read()
            assert message is not None
            shown = cli.ok("groups", path, "--pending", "billing", "--format", "json")
            (pending,) = json.loads(shown.out)
            assert (pending["index"], pending["consumer"]) == (f"{last - 1:#x}", "c1")
            assert (pending["pid"], pending["deliveries"]) == (os.getpid(), 1)
            assert 0 <= pending["age_s"] < 30 < pending["timeout_s"] <= 60
            extended = cli.ok("groups", path, "--extend", "billing", str(message.index), "1h")
            assert extended.lines == [f"extended: name=billing index={message.index:#x} messages=1"]
            released = cli.ok(
                *("groups", path, "--release", "billing", str(message.index)),
                *("--delay", "1h", "--format", "jsonl"),
            )
            assert json.loads(released.out)["messages"] == 1
            assert not message.ack()
        (waiting,) = queue.group("billing").pending()
        assert (waiting.cause, waiting.delay_s > 3000) == ("released", True)
    refused = cli("groups", path, "--extend", "billing", str(last - 1), "1h")
    assert (refused.code, "no consumer has it" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--delay", "5s"), "--delay requires --release"),
        (("--time-field", "at"), "--time-field requires --reset"),
        (("--reset", "billing", "end", "--time-field", "at"), "--reset with a time"),
        (("--extend", "billing", "1", "soon"), "not a duration"),
        (("--release", "billing", "2024-01-15"), "expected an index"),
        (("--pending", "other"), "no group has this name: name=other"),
    ],
)
def test_bad_options_of_a_change_say_so(
    cli: Cli, path: Path, last: int, arguments: tuple[str, ...], message: str
) -> None:
    assert last
    before = snapshot(path)
    found = cli("groups", path, *arguments)
    assert (found.code != 0, message in found.err) == (True, True), found.err
    assert snapshot(path) == before


def test_stat_and_top_show_groups(cli: Cli, path: Path, last: int) -> None:
    with (
        quire.open(path) as queue,
        queue.group("billing").consumer("c1") as consumer,
        queue.group("audit").consumer(),
    ):
        assert consumer.read()
        (stat,) = json.loads(cli.ok("stat", path, "--format", "json").out)
        audit, billing = stat["groups"]
        assert (audit["lag"], audit["pending"], audit["oldest_s"]) == (4, 0, None)
        assert (billing["lag"], billing["pending"], billing["wrong"]) == (2, 1, None)
        assert 0 <= billing["oldest_s"] < 60
        assert billing["members"] == [{"name": "c1", "pid": os.getpid(), "messages": 1}]
        text = cli.ok("stat", path).out
        assert f"c1:{os.getpid()} 1" in text
        header, row = cli.ok("stat", path, "--format", "csv").lines
        found = dict(zip(header.split(","), row.split(","), strict=True))
        assert (found["groups"], found["max_group_lag"]) == ("2", "4")
        sample = json.loads(
            cli.ok("top", path, "--once", "--interval", "0.1", "--format", "jsonl").lines[0]
        )
        assert [(it["name"], it["lag"], it["pending"]) for it in sample["groups"]] == [
            ("audit", 4, 0),
            ("billing", 2, 1),
        ]
        assert sample["lag"] == 4
    assert last


def test_a_group_that_cannot_be_read_is_named_by_stat_and_left_out_by_top(
    cli: Cli, path: Path, last: int
) -> None:
    assert last
    (path / "other.qgroup").symlink_to(path / "billing.qgroup")
    with quire.open(path) as queue:
        queue.group("third").consumer().close()
    with (path / "third.qgroup").open("r+b") as file:
        file.seek(8)
        file.write((1).to_bytes(8, "little"))
        file.seek(40)
        file.write(bytes(8))
    facts = json.loads(cli.ok("stat", path, "--format", "json").out)[0]
    wrong = {it["name"]: it["wrong"] for it in facts["groups"]}
    assert wrong["billing"] is None
    assert "a symbolic link" in wrong["other"]
    assert "a symbolic link" in cli.ok("stat", path).out
    sample = json.loads(
        cli.ok("top", path, "--once", "--interval", "0.1", "--format", "jsonl").lines[0]
    )
    assert sample["state"] == "ok"
    assert [it["name"] for it in sample["groups"]] == ["billing", "third"]
