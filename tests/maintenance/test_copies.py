"""A copy of a queue in use holds what was acknowledged before it, and needs no repair."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path

import pytest

import quire
import quire_peer
from cli_runs import Cli, run
from java_peer import JavaProcess, Option
from paths import GOLDEN
from queues import DAY_MS, START_MS, forward, snapshot
from quire.maintenance import copy_run, copying

Content = list[tuple[int, bytes]]


def content(path: Path) -> Content:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [(excerpt.index, excerpt.data) for excerpt in tailer]


@pytest.fixture
def filled(path: Path) -> Path:
    """Three days of 300 messages, a named tailer in the second, metadata between."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
        queue.tailer("risk") as risk,
    ):
        for day in range(3):
            for number in range(300):
                appender.write_map({"day": day, "n": number, "text": "x" * (number % 50)})
            with appender.writing_document(metadata=True) as document:
                document.write("day", day)
            clock.advance(DAY_MS)
        risk.read_many(450)
    return path


def test_a_copy_is_the_queue(filled: Path, tmp_path: Path) -> None:
    before = snapshot(filled)
    copied = quire.copy_queue(filled, tmp_path / "copy")
    assert snapshot(filled) == before
    assert content(tmp_path / "copy") == content(filled)
    assert quire.verify(tmp_path / "copy").findings == ()
    assert (copied.messages, copied.files) == (900, 3)
    with quire.open(filled, read_only=True) as source, quire.open(tmp_path / "copy") as copy:
        assert copied.last_index == source.last_index == copy.last_index
        assert copy.named_tailers() == source.named_tailers()
        assert copy.dump().count("meta-data") == source.dump().count("meta-data")
        with copy.appender() as appender:
            appender.write_text("goes on")
    assert len(content(tmp_path / "copy")) == 901
    assert quire.verify(tmp_path / "copy").findings == ()
    assert content(filled)[-1] != content(tmp_path / "copy")[-1]


def test_the_locks_of_a_copy_are_free(filled: Path, tmp_path: Path) -> None:
    with quire.open(filled) as queue, queue.appender() as appender:
        with appender.writing_document() as document:
            document.write("n", 1)
            quire.copy_queue(filled, tmp_path / "copy")
        with quire.open(tmp_path / "copy") as copy:
            assert not copy.write_lock.locked
    assert len(content(tmp_path / "copy")) == 900


@pytest.mark.parametrize("name", ["a_empty_queue_opened", "h_named_tailers", "l_crash_open"])
def test_queues_of_java_are_copied(name: str, tmp_path: Path) -> None:
    source = GOLDEN / "java-5.27ea11" / name
    quire.copy_queue(source, tmp_path / "copy")
    assert content(tmp_path / "copy") == content(source)
    assert [it for it in quire.verify(tmp_path / "copy").findings if it.severity != "note"] == []


def test_a_queue_without_a_table_and_one_of_version_4(filled: Path, tmp_path: Path) -> None:
    (filled / "metadata.cq4t").unlink()
    quire.copy_queue(filled, tmp_path / "copy")
    assert content(tmp_path / "copy") == content(filled)
    quire.copy_queue(GOLDEN / "v4", tmp_path / "old")
    assert content(tmp_path / "old") == content(GOLDEN / "v4")


def last_acknowledged(process: JavaProcess) -> int:
    """Wait for another acknowledgement, and return its index."""
    line = process.read_line()
    assert line is not None
    return int(line.split()[0], 16)


@pytest.mark.check
def test_copies_of_a_queue_that_two_processes_write(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    options: dict[str, Option] = {"dir": path, "count": 3_000, "pause_us": 1_000, "ack": True}
    with quire.open(path, roll_cycle="TEST4_SECONDLY", block_bytes=2**16):
        pass
    acknowledged: list[int] = []
    with (
        quire_peer.start("produce", id=1, **options) as first,
        quire_peer.start("produce", id=2, **options) as second,
    ):
        for process in (first, second):
            process.expect("READY")
        for number in range(8):
            acknowledged.append(max(map(last_acknowledged, (first, second))))
            copied = quire.copy_queue(path, tmp_path / f"copy{number}")
            assert copied.last_index is not None
            assert copied.last_index >= acknowledged[-1]
        for process in (first, second):
            process.read_until("DONE", 120)
    whole = content(path)
    assert len(whole) == 6_000
    for number in range(8):
        copy = tmp_path / f"copy{number}"
        found = content(copy)
        assert found == whole[: len(found)]
        assert quire.verify(copy).findings == ()


def test_messages_between_any_two_reads_do_no_harm(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    read = os.pread
    monkeypatch.setattr(copy_run, "_PIECE", 8_192)
    with quire.open(filled, clock=clock) as queue, queue.appender() as appender:

        def read_and_append(file: int, length: int, position: int) -> bytes:
            found = read(file, length, position)
            appender.write_many([b"x" * 50] * 20)
            return found

        monkeypatch.setattr(os, "pread", read_and_append)
        copied = quire.copy_queue(filled, tmp_path / "copy")
        monkeypatch.undo()
    found = content(tmp_path / "copy")
    assert (found, len(found)) == (content(filled)[: len(found)], copied.messages)
    assert copied.messages > 900
    assert quire.verify(tmp_path / "copy").findings == ()


class Stopped(Exception):  # noqa: N818 - not an error
    """The copy was interrupted here."""


class Steps:
    """Progress of a copy, which it stops at one of its steps."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.done: list[int] = []
        self._stop_at = stop_at

    def __call__(self, _what: str, done: int, _total: int, /) -> None:
        self.done.append(done)
        if len(self.done) == self._stop_at:
            raise Stopped


def test_a_copy_that_was_stopped_anywhere_is_resumed(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_run, "_PIECE", 8_192)
    monkeypatch.setattr(copying, "_FIRST_DOCUMENT", 4_096)
    monkeypatch.setattr(copy_run, "_BETWEEN_NOTES", 16_384)
    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    begun_at: list[int] = []
    for stop_at in count(1):
        copy = tmp_path / f"copy{stop_at}"
        try:
            quire.copy_queue(filled, copy, progress=Steps(stop_at))
        except Stopped:
            pass
        else:
            break
        assert not copy.exists()
        with quire.open(filled, clock=clock) as queue, queue.appender() as appender:
            appender.write_map({"more": stop_at})
        resumed = Steps()
        quire.copy_queue(filled, copy, progress=resumed)
        begun_at.append(resumed.done[0])
        assert content(copy) == content(filled)
        assert quire.verify(copy).findings == ()
        assert not [it for it in tmp_path.iterdir() if it.name.startswith(".")]
        shutil.rmtree(copy)
    assert len(begun_at) > 5
    assert max(begun_at) > 4 * 8_192, "no run continued where an earlier one stopped"


def test_a_copy_of_another_queue_begins_again(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_run, "_BETWEEN_NOTES", 1)

    with pytest.raises(Stopped):
        quire.copy_queue(filled, tmp_path / "copy", progress=Steps(1))
    with quire.open(tmp_path / "other") as queue, queue.appender() as appender:
        appender.write_text("hello")
    assert quire.copy_queue(tmp_path / "other", tmp_path / "copy").messages == 1
    assert content(tmp_path / "copy") == content(tmp_path / "other")


def test_what_cannot_be_copied(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(FileExistsError, match="the destination is not empty"):
        quire.copy_queue(filled, tmp_path / "full")
    for inside in (filled / "copy", filled, tmp_path):
        with pytest.raises(ValueError, match="the destination overlaps the source"):
            quire.copy_queue(filled, inside)
    with pytest.raises(quire.errors.NotAQueueError):
        quire.copy_queue(tmp_path / "nothing", tmp_path / "copy")
    with pytest.raises(
        quire.errors.UnsupportedError, match="only the directory of a queue is copied"
    ):
        quire.copy_queue(min(filled.glob("*.cq4")), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_pipe_in_the_place_of_a_roll_file_is_refused(filled: Path, tmp_path: Path) -> None:
    os.mkfifo(filled / "20240101T4.cq4")
    with pytest.raises(quire.QuireError, match="20240101T4"):
        quire.copy_queue(filled, tmp_path / "copy")


def test_a_damaged_source_is_named(filled: Path, tmp_path: Path) -> None:
    file = sorted(filled.glob("*.cq4"))[1]
    content_of = bytearray(file.read_bytes())
    content_of[0x600:0x700] = b"\xff" * 0x100
    file.write_bytes(content_of)
    with pytest.raises(quire.errors.CorruptError, match=file.name):
        quire.copy_queue(filled, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_the_verb(cli: Cli, filled: Path, tmp_path: Path) -> None:
    with quire.open(filled, read_only=True) as queue:
        last = queue.last_index
        expected = forward(queue)
    line = cli.ok("copy", filled, tmp_path / "copy").out
    assert line.startswith("messages=900 files=3 bytes=")
    assert line.endswith(f" last={last:#x}\n")
    with quire.open(tmp_path / "copy", read_only=True) as queue:
        assert forward(queue) == expected
    ran = cli("copy", filled, tmp_path / "copy")
    assert (ran.code, ran.err) == (
        1,
        f"quire: the destination is not empty: dest={tmp_path / 'copy'}\n",
    )
    ran = cli("copy", filled, filled / "x")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_the_verb_as_a_process(filled: Path, tmp_path: Path) -> None:
    ran = run("copy", filled, tmp_path / "copy")
    assert (ran.code, ran.err) == (0, "")
    assert content(tmp_path / "copy") == content(filled)
