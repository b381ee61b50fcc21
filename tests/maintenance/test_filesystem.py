"""`verify_filesystem`: this file system is fine, and one that is not is found out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run
from quire.maintenance import filesystem
from quire.maintenance.filesystem import Peer


def failures(path: Path) -> dict[str, str]:
    return {
        it.name: it.found for it in quire.maintenance.verify_filesystem(path).checks if not it.ok
    }


def test_a_local_file_system_is_safe(tmp_path: Path) -> None:
    report = quire.maintenance.verify_filesystem(tmp_path)
    assert (report.ok, report.network, failures(tmp_path)) == (True, None, {})
    assert len(report.checks) == 7
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("verb", "answer", "name"),
    [
        ("lock", "True", "byte-range locks"),
        ("classic", "True", "byte-range locks"),
        ("lock", "False", "byte-range locks"),
        ("load", "7", "shared mappings"),
        ("create", "created", "names"),
        ("publish", "published", "names"),
        ("grow", "grown", "growing files"),
    ],
)
def test_a_process_that_sees_something_else_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, answer: str, name: str
) -> None:
    ask = Peer.ask

    def mistaken(self: Peer, asked: str, argument: object = "") -> str:
        return answer if asked == verb else ask(self, asked, argument)

    monkeypatch.setattr(Peer, "ask", mistaken)
    assert name in failures(tmp_path)


def test_a_lock_that_stays_after_its_process_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_handle: int, _byte: int) -> bool:
        return False

    monkeypatch.setattr(filesystem, "lock_byte", never)
    monkeypatch.setattr(filesystem, "_PATIENCE_S", 0.0)
    found = failures(tmp_path)["stale locks"]
    assert found == "the lock of a killed process is held after 0 s"


def test_the_verb(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def network(_path: str) -> str:
        return "nfs"

    def failing(_file: Path) -> str:
        return "it failed"

    lines = cli.ok("verify", "--filesystem", tmp_path).lines
    assert (lines[0].split(), lines[-1]) == (["name", "ok", "found", "meaning"], "safe")
    monkeypatch.setattr(filesystem, "network_file_system", network)
    last = cli.ok("verify", "--filesystem", tmp_path).lines[-1]
    assert last.startswith("safe with allow_network=True while only this host uses the queues: nfs")
    monkeypatch.setattr(filesystem, "_CHECKS", (("sync", "why", failing),))
    ran = cli("verify", "--filesystem", tmp_path)
    assert (ran.code, ran.lines[-1]) == (1, "not safe: write no queue here")
    ran = cli("verify", "--filesystem", tmp_path, "--format", "jsonl")
    assert json.loads(ran.out) == {
        "name": "sync",
        "ok": False,
        "found": "it failed",
        "meaning": "why",
    }


def test_what_cannot_be_tried_is_one_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "nothing", tmp_path / "file"):
        ran = cli("verify", "--filesystem", place)
        assert (ran.code, ran.err.count("\n"), ran.raw) == (1, 1, b"")


def test_as_a_process(tmp_path: Path) -> None:
    ran = run("verify", "--filesystem", tmp_path)
    assert (ran.code, ran.err, ran.lines[-1]) == (0, "", "safe")
