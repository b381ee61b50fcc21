"""The audit log: what it has, what is counted in it, and who cannot reach it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import run
from quire.server import TokenFile
from served import command, connected, serving, talk


def rows_of(audit: Path) -> list[dict[str, Any]]:
    with quire.open(audit, read_only=True) as queue, queue.tailer() as tailer:
        return [it.to_dict() for it in tailer]


def told(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(it["what"], it["who"], it.get("command", it["about"])) for it in rows]


def test_each_record_says_when(tmp_path: Path) -> None:
    before = time.time_ns()
    with (
        serving(tmp_path / "queues", "--audit", tmp_path / "audit") as (port, _),
        connected(port) as client,
    ):
        client.exists("a", "b")
    times = [it["when"] for it in rows_of(tmp_path / "audit")]
    assert times == sorted(times)
    assert before <= times[0] <= times[1] <= time.time_ns()


def test_each_change_is_written_with_its_command(tmp_path: Path) -> None:
    file, audit = tmp_path / "tokens", tmp_path / "audit"
    token = TokenFile(file).add("keeper", {"read": ("*",), "manage": ("*",)})
    with quire.open(tmp_path / "queues" / "orders") as queue:
        queue.appender().write_text("a")
    with (
        serving(tmp_path / "queues", "--tokens", file, "--audit", audit) as (port, _),
        connected(port, password=token, single_connection_client=True) as client,
    ):
        for words in (
            "XTRIM orders MAXLEN ~ 5",
            "XTRIM orders MAXLEN ~ 5",
            "XGROUP DESTROY orders g",
        ):
            client.execute_command(*words.split())
        client.execute_command("QUIRE.TAILER", "DELETE", "orders", "t\n\xff")
    assert told([it for it in rows_of(audit) if it["what"] == "manage"]) == [
        ("manage", "keeper", "XTRIM orders MAXLEN ~ 5"),
        ("manage", "keeper", "XTRIM orders MAXLEN ~ 5"),
        ("manage", "keeper", "XGROUP DESTROY orders g"),
        ("manage", "keeper", "QUIRE.TAILER DELETE orders t\n\xff"),
    ]


def test_what_a_connection_does_with_another_token_is_written_again(tmp_path: Path) -> None:
    file, audit = tmp_path / "tokens", tmp_path / "audit"
    tokens = [TokenFile(file).add(it, {"read": ("*",)}) for it in ("first", "second")]
    asked = [command(*it) for token in tokens for it in (("AUTH", token), ("XLEN", "orders"))]
    with serving(tmp_path / "queues", "--tokens", file, "--audit", audit) as (port, _):
        assert talk(port, b"".join(asked)) == b"+OK\r\n:0\r\n" * 2
    assert told(rows_of(audit)) == [
        (what, who, about)
        for who in ("first", "second")
        for what, about in (("authenticated", ""), ("read", "orders"))
    ]


def test_what_may_be_repeated_without_end_is_counted(tmp_path: Path) -> None:
    file, audit = tmp_path / "tokens", tmp_path / "audit"
    token = TokenFile(file).add("reader", {"read": ("*",)})
    with serving(tmp_path / "queues", "--tokens", file, "--audit", audit) as (port, process):
        for _ in range(5):
            talk(port, command("AUTH", "wrong") * 10)
        talk(port, (command("AUTH", token) + command("XADD", "orders", "*", "n", "1")) * 30)
        process.terminate()
        assert process.wait() == 0
    rows = [it for it in rows_of(audit) if it["what"] != "read"]
    assert len(rows) < 12  # six, and two more for each minute that went by
    for what, count in (("wrong token", 50), ("authenticated", 30), ("refused", 30)):
        assert sum(it.get("count", 1) for it in rows if it["what"] == what) == count


@pytest.mark.parametrize("place", ["audit", "logs/audit", ".", "link"])
def test_a_log_that_clients_could_reach_is_refused(tmp_path: Path, place: str) -> None:
    root = tmp_path / "queues"
    root.mkdir()
    (tmp_path / "link").symlink_to(root / "hidden")
    audit = (tmp_path if place == "link" else root) / place
    ran = run("serve", str(root), "--listen", "127.0.0.1:0", "--audit", str(audit))
    assert ran.code == 2
    assert "below the served directory" in ran.err
    assert [*root.iterdir()] == []
