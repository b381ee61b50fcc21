"""Bad input of any kind gets an error that says what is wrong: never a crash, never a hang."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from parameters import some
from queues import DAY_MS, START_MS, payloads, snapshot

NAME, NEXT_NAME = "20240115T4.cq4", "20240116T4.cq4"
FOREIGN: dict[str, bytes] = {
    "text": b"these are no documents\n" * 500,
    "a length without end": b"\xff\xff\xff\x7f" + bytes(8192),
    "metadata of no bytes": b"\x00\x00\x00\x40" + bytes(8192),
    "a message": b"\x05\x00\x00\x00hello" + bytes(8192),
    "an event of another name": b"\x10\x00\x00\x40\xb9\x06footer" + bytes(8192),
    "a header cut off": b"\xc1\x00\x00\x40\xb9\x06header\xb6\x08SCQStore\x82\xaa",
    "every byte": b"\x10\x20\x30\x40" + bytes(range(256)) * 32,
}


def make_fifo(file: Path) -> None:
    os.mkfifo(file)


def make_link(file: Path) -> None:
    target = file.parent.parent / "elsewhere.cq4"
    target.write_bytes(b"somewhere else")
    file.symlink_to(target)


def make_dangling_link(file: Path) -> None:
    file.symlink_to(file.parent.parent / "nowhere")


def make_endless_link(file: Path) -> None:
    file.symlink_to("/dev/zero")


def make_socket(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(file))  # a name of few bytes


MAKERS: list[Callable[[Path], None]] = [
    make_fifo,
    make_link,
    make_dangling_link,
    make_endless_link,
    make_socket,
    Path.mkdir,
]


def use(path: Path, *, read_only: bool = False) -> list[bytes]:
    """Open, read, count, and unless it is read-only append."""
    options: dict[str, Any] = {"read_only": read_only, "timeout_s": 0.1}
    clock = quire.ManualClock(START_MS + DAY_MS)
    with quire.open(
        path, clock=clock, block_bytes=1, wait=quire.WaitOptions(eof_grace_s=0.0), **options
    ) as queue:
        found = payloads(queue)
        queue.tailer().to_end()
        assert queue.entry_count >= len(found)
        queue.dump()
        if not read_only:
            queue.appender().write_bytes(b"appended")
        return payloads(queue)


@pytest.fixture
def filled(path: Path, queue: quire.JournalQueue) -> Path:
    """A closed queue of one file and three messages."""
    queue.appender().write_many([b"one", b"two", b"three"])
    queue.close()
    return path


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", [NAME, NEXT_NAME, "metadata.cq4t"])
@pytest.mark.parametrize("read_only", [True, False], ids=["read-only", "writable"])
def test_what_is_no_file_is_refused(
    filled: Path, name: str, make: Callable[[Path], None], *, read_only: bool
) -> None:
    (filled / name).unlink(missing_ok=True)
    make(filled / name)

    with pytest.raises(quire.errors.NotAQueueError, match=re.escape(name)):
        use(filled, read_only=read_only)


@pytest.mark.parametrize("make", MAKERS[:1] + MAKERS[2:5], ids=lambda make: make.__name__)
def test_a_queue_is_not_what_is_no_directory(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "sub" / "queue.cq4"
    path.parent.mkdir()
    make(path)
    for read_only in (True, False):
        with pytest.raises((quire.errors.NotAQueueError, OSError), match=r"queue\.cq4"):
            use(path, read_only=read_only)


def test_a_queue_is_no_regular_file_but_a_directory_through_a_link(
    filled: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(filled)

    for read_only in (True, False):
        with pytest.raises(quire.errors.NotAQueueError, match="file"):
            use(tmp_path / "file", read_only=read_only)
    with pytest.raises((quire.errors.NotAQueueError, NotADirectoryError)):
        quire.open(tmp_path / "file" / "below")
    assert use(tmp_path / "link") == [b"one", b"two", b"three", b"appended"]


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("name", [NAME, NEXT_NAME])
def test_a_foreign_roll_file_is_corrupt_and_left_alone(
    filled: Path, content: bytes, name: str
) -> None:
    (filled / name).write_bytes(content)
    for read_only in (True, False):
        with pytest.raises(quire.errors.CorruptError) as caught:
            use(filled, read_only=read_only)
        error = caught.value
        assert error.file is not None
        assert Path(error.file).name == name
        assert None not in (error.position, error.found, error.expected)
        assert f"found={error.found} expected={error.expected}" in str(error)
    assert (filled / name).read_bytes() == content


@pytest.mark.parametrize("content", some(FOREIGN.values(), keep=[0]), ids=FOREIGN)
def test_a_foreign_table_is_corrupt_and_left_alone(filled: Path, content: bytes) -> None:
    table = filled / "metadata.cq4t"
    content = content.ljust(131_072, b"\0")
    table.write_bytes(content)
    for read_only in (True, False):
        with pytest.raises(quire.errors.CorruptError, match=re.escape("metadata.cq4t")):
            use(filled, read_only=read_only)
    assert table.read_bytes() == content


def test_a_table_and_a_roll_file_are_not_taken_for_one_another(filled: Path) -> None:
    table, roll_file = (filled / "metadata.cq4t").read_bytes(), (filled / NAME).read_bytes()
    (filled / NEXT_NAME).write_bytes(table)
    with pytest.raises(quire.errors.CorruptError, match=NEXT_NAME):
        use(filled)
    (filled / NEXT_NAME).unlink()
    (filled / "metadata.cq4t").write_bytes(roll_file.ljust(131_072, b"\0"))
    with pytest.raises(
        (quire.errors.CorruptError, quire.errors.NotAQueueError), match=r"metadata\.cq4t"
    ):
        use(filled)


def test_a_file_of_no_bytes_is_completed_by_a_writer_and_passed_by_readers(filled: Path) -> None:
    (filled / NEXT_NAME).touch()

    assert use(filled, read_only=True) == [b"one", b"two", b"three"]
    assert use(filled) == [b"one", b"two", b"three", b"appended"]
    assert not list(filled.glob("*.discard"))


def test_a_table_of_no_bytes_is_made_anew_by_a_writer(filled: Path) -> None:
    (filled / "metadata.cq4t").write_bytes(b"")
    before = snapshot(filled)
    try:
        assert use(filled, read_only=True) == [b"one", b"two", b"three"]
    except quire.QuireError as error:
        assert "metadata.cq4t" in str(error)  # noqa: PT017 - either is right
    assert snapshot(filled) == before

    assert use(filled) == [b"one", b"two", b"three", b"appended"]


def test_a_file_that_was_never_finished_is_put_aside(filled: Path) -> None:
    unfinished = b"\x00\x00\x00\x80 parts of a header".ljust(8192, b"\0")
    (filled / NEXT_NAME).write_bytes(unfinished)

    assert use(filled, read_only=True) == [b"one", b"two", b"three"]
    assert use(filled) == [b"one", b"two", b"three", b"appended"]
    (aside,) = filled.glob("*.discard")
    assert re.fullmatch(re.escape(NEXT_NAME) + r"-\d+\.discard", aside.name)
    assert aside.read_bytes() == unfinished


@pytest.mark.parametrize("content", [b"", b"\0\0\0\x80 parts of a header", bytes(4096)])
@pytest.mark.parametrize("rolls", [True, False])
def test_an_older_file_that_was_never_finished_holds_no_reader_up(
    filled: Path, content: bytes, *, rolls: bool
) -> None:
    clock = quire.ManualClock(START_MS)
    if not rolls:
        (filled / NEXT_NAME).write_bytes(content)
    with quire.open(filled, clock=clock) as queue, queue.appender() as appender:
        if rolls:
            appender.write_bytes(b"before")
            (filled / NEXT_NAME).write_bytes(content)
        clock.advance(2 * DAY_MS)
        appender.write_bytes(b"last")
        assert payloads(queue)[-1] == b"last"
    assert not (filled / NEXT_NAME).exists()
    assert len([*filled.glob("*.discard")]) == 1
    with quire.open(filled, read_only=True) as queue:
        assert payloads(queue)[-1] == b"last"


UNFINISHED = {
    "of no bytes": b"",
    "of zeros": bytes(8192),
    "begun": b"\x00\x00\x00\x80 parts of a header".ljust(8192, b"\0"),
}


@pytest.fixture(params=UNFINISHED)
def unfinished(request: pytest.FixtureRequest, filled: Path) -> Path:
    """A queue of three messages, a file that was never finished, and a fourth message behind it."""
    later = quire.ManualClock(START_MS + 2 * DAY_MS)
    with quire.open(filled, clock=later, block_bytes=1) as queue:
        queue.appender().write_bytes(b"four")
    (filled / NEXT_NAME).write_bytes(UNFINISHED[request.param])
    return filled


def test_a_tailer_waits_the_grace_time_for_a_file_between_others(unfinished: Path) -> None:
    with quire.open(
        unfinished, read_only=True, wait=quire.WaitOptions(eof_grace_s=0.3), timeout_s=3600
    ) as queue:
        assert queue.tailer().read_many(9) == [b"one", b"two", b"three", b"four"]
    with quire.open(
        unfinished, read_only=True, wait=quire.WaitOptions(eof_grace_s=3600), timeout_s=3600
    ) as queue:
        tailer = queue.tailer()
        assert tailer.read_many(3) == [b"one", b"two", b"three"]
        with pytest.raises(quire.errors.WaitTimeoutError):  # it may still be finished
            tailer.wait(0.01)


def test_a_tailer_waits_for_the_newest_file_as_long_as_it_may_be_finished(filled: Path) -> None:
    (filled / NEXT_NAME).touch()
    with quire.open(
        filled, read_only=True, wait=quire.WaitOptions(eof_grace_s=0.0), timeout_s=3600
    ) as queue:
        tailer = queue.tailer()
        assert tailer.read_many(9) == [b"one", b"two", b"three"]
        assert use(filled) == [b"one", b"two", b"three", b"appended"]
        tailer.wait(50)
        assert tailer.read_bytes() == b"appended"


@pytest.mark.parametrize("name", ["notes.cq4", ".cq4", "20240115F.cq4", "20240232T4.cq4", "é.cq4"])
def test_a_foreign_name_is_an_error_that_says_it(filled: Path, name: str) -> None:
    shutil.copyfile(filled / NAME, filled / name)
    for read_only in (True, False):
        with pytest.raises(
            (quire.errors.NotAQueueError, quire.errors.RollCycleMismatchError), match=name
        ):
            use(filled, read_only=read_only)


@pytest.mark.parametrize(
    "name", ["notes.txt", "x.cq4.bak", "20240101T4.cq4-17.discard", "a.precreated"]
)
def test_other_names_are_of_no_interest(filled: Path, name: str) -> None:
    (filled / name).write_bytes(b"?")
    (filled / "folder").mkdir()
    assert use(filled) == [b"one", b"two", b"three", b"appended"]
    assert (filled / name).read_bytes() == b"?"


def test_another_roll_cycle_is_refused_where_there_is_data(filled: Path) -> None:
    for read_only in (True, False):
        with pytest.raises(
            quire.errors.RollCycleMismatchError, match="asked=DAILY found=TEST4_DAILY"
        ):
            quire.open(filled, roll_cycle="DAILY", read_only=read_only)
    (filled / "metadata.cq4t").unlink()
    with pytest.raises(quire.errors.RollCycleMismatchError, match="asked=DAILY found=TEST4_DAILY"):
        quire.open(filled, roll_cycle="DAILY")
    assert not (filled / "metadata.cq4t").exists()


def test_an_empty_queue_keeps_its_roll_cycle_with_a_warning_if_one_was_named(
    path: Path, queue: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "quire"):
        with quire.open(path, roll_cycle="DAILY") as again:
            assert again.roll_cycle == queue.roll_cycle
        assert "asked=DAILY found=TEST4_DAILY" in caplog.text
        caplog.clear()
        for options in ({}, {"roll_cycle": "test4_daily"}):
            with quire.open(path, **options) as again:  # type: ignore[call-overload]
                assert again.roll_cycle == queue.roll_cycle
        assert not caplog.records
