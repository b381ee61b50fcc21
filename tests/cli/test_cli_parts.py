"""Verbs that need a whole queue, and get a part of one or several; `write` into a Quick-Queue."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from older_queues import fill, found
from queues import snapshot

OF_PARTS = (("archive", "{path}", "{out}"), ("record", "{path}", "--stdin"))
VERBS = (
    ("convert", "{path}", "{out}", "--into", "parquet"),
    ("diff", "{path}", "{path}"),
    ("explain", "{path}", "0"),
    ("groups", "{path}"),
    ("merge", "--by", "n", "{path}", "{out}"),
    ("prune", "{path}", "--keep", "1d"),
    ("refresh", "{path}"),
    ("removable", "{path}"),
    ("replay", "{path}"),
    ("split", "--by", "n", "{path}", "{out}"),
    ("tailers", "{path}"),
    ("unlock", "{path}"),
    ("write", "{path}"),
)
PARTS = {
    "vanilla": ("20240115", "20240115/index-0"),
    "quick-queue": ("0.qx", "0.qd"),
}


@pytest.fixture
def queues(tmp_path: Path) -> Path:
    """A directory of queues, one of each older format."""
    for kind in PARTS:
        fill(tmp_path / "queues" / kind, kind, [[b"one", b"two"]])
    return tmp_path / "queues"


@pytest.mark.parametrize("verb", [*VERBS, *OF_PARTS], ids=lambda it: it[0])
def test_a_part_of_a_queue_names_the_queue(
    cli: Cli, queues: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    before = snapshot(queues)
    for kind, parts in PARTS.items():
        for part in parts:
            path = queues / kind / part
            ran = cli(*(it.format(path=path, out=tmp_path / "out") for it in verb))
            assert ran.code in {1, 2}
            wanted = f"quire: a part of a queue: path={path} queue={queues / kind} "
            assert ran.err.startswith(wanted)
            assert "--create" not in ran.err
    assert snapshot(queues) == before


@pytest.mark.parametrize("verb", VERBS, ids=lambda it: it[0])
def test_a_directory_of_queues_names_those_in_it(
    cli: Cli, queues: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    before = snapshot(queues)
    ran = cli(*(it.format(path=queues, out=tmp_path / "out") for it in verb))
    assert ran.code in {1, 2}
    assert ran.err.startswith(
        f"quire: a directory of queues, not a queue: path={queues} queues=quick-queue, vanilla "
    )
    assert snapshot(queues) == before


@pytest.mark.parametrize("verb", ["verify", "repair"])
def test_parts_are_not_checked_alone(cli: Cli, queues: Path, verb: str) -> None:
    for kind, parts in PARTS.items():
        for part in parts:
            ran = cli(verb, queues / kind / part)
            assert ran.code in {1, 2}
            assert ran.err.count("\n") == 1
            assert "a part of a queue" in ran.err or "give its queue's directory" in ran.err
    assert "nothing wrong" in cli.ok("verify", queues).out


def test_a_dump_of_a_cycle_or_of_several_queues(cli: Cli, queues: Path) -> None:
    ran = cli("dump", queues / "vanilla/20240115")
    assert ran.err.startswith("quire: a part of a queue: ")
    assert cli("dump", queues).err.startswith("quire: a directory of queues, not a queue: ")


def test_no_queue_is_made_within_another(queues: Path) -> None:
    with pytest.raises(quire.errors.NotAQueueError, match="a part of a queue"):
        quire.open(queues / "vanilla/20240115")


def test_unlock_of_what_has_no_lock(cli: Cli, queues: Path) -> None:
    for kind in PARTS:
        ran = cli("unlock", queues / kind)
        assert ran.code == 2
        assert f"only a Chronicle Queue has a write lock: format={kind}" in ran.err


def test_files_of_named_producers(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "book"
    with (
        quire.quick_queue.open(path, page_bytes=4096) as queue,
        queue.appender("AA0") as appender,
    ):
        appender.write_many([b"one", b"two"])
    assert len(cli.ok("read", path / "0.qmx", "--format", "jsonl").lines) == 2
    assert "named producers" in cli.ok("stat", path / "0.qmx").out
    with pytest.raises(quire.errors.NotAQueueError, match=f"a part of a queue: .* queue={path} "):
        quire.open(path / "AA0")
    for part in ("AA0", "AA0/0.qd", "AA0.qm"):
        for verb in (("read",), ("stat",), ("tail", "--no-follow")):
            ran = cli(*verb, path / part)
            assert (ran.code, ran.out) == (2, "")
            assert f"queue={path} (give the queue, or one of its *.qmx files)" in ran.err


@pytest.mark.parametrize("sync", [(), ("--sync",)])
def test_write_appends_to_a_quick_queue(
    cli: Cli, queues: Path, tmp_path: Path, sync: tuple[str, ...]
) -> None:
    path = queues / "quick-queue"
    (tmp_path / "lines.txt").write_text("three\nfour\n")
    ran = cli.ok("write", path, tmp_path / "lines.txt", "--format", "text", *sync)
    assert ran.out == "written=2 last=0x30\n"
    (tmp_path / "none.txt").touch()
    assert cli.ok("write", path, tmp_path / "none.txt", "--format", "text").out == "written=0\n"
    assert [index for index, _ in found(path)] == [0, 16, 32, 48]
