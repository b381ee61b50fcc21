"""A table that is removed, moved or replaced while queues are open on it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from pause_points import Party
from queues import DAY_MS, exit_code, fork, payloads, problems_of

TABLE = "metadata.cq4t"
SECOND_MS = 1000
PACE_S = 0.0005
LONGEST_S = 300.0


def remove(path: Path) -> None:
    (path / TABLE).unlink()


def move(path: Path) -> None:
    (path / TABLE).rename(path / "aside")


def replace(path: Path) -> None:
    shutil.copyfile(path / TABLE, path / "copy")
    (path / "copy").rename(path / TABLE)


LOSSES = [remove, move, replace]


def write_document(appender: quire.JournalAppender) -> None:
    with appender.writing_document() as document:
        document.write_bytes(b"lost")


WRITES: dict[str, Callable[[quire.JournalAppender], object]] = {
    "write_bytes": lambda appender: appender.write_bytes(b"lost"),
    "write_many": lambda appender: appender.write_many([b"lost"]),
    "writing_document": write_document,
    "sync": lambda appender: appender.sync(),
}


def produce(path: Path, report: Path, started: int) -> None:
    """Append until the table is lost; then write down what was acknowledged, and the error."""
    acknowledged: list[str] = []
    error = ""
    deadline = time.monotonic() + LONGEST_S
    with quire.open(path) as queue, queue.appender() as appender:
        while not error and time.monotonic() < deadline:
            text = f"old {len(acknowledged)}"
            try:
                appender.write_bytes(text.encode())
            except quire.QuireError as raised:
                error = type(raised).__name__
            else:
                acknowledged.append(text)
            if len(acknowledged) == 100:
                os.write(started, b"x")
            time.sleep(PACE_S)
    report.write_text(json.dumps([acknowledged, error]), encoding="utf-8")


def test_what_two_writers_were_told_is_there_is_there(path: Path, tmp_path: Path) -> None:
    """The second opens once the table is gone, and makes another, while the first one writes."""
    reading, writing = os.pipe()
    report = tmp_path / "report.json"
    quire.open(path).close()
    child = fork(lambda: produce(path, report, writing))
    os.read(reading, 1)
    remove(path)
    appended = []
    with quire.open(path) as queue, queue.appender() as appender:
        for number in range(2000):
            appender.write_bytes(b"new %d" % number)
            appended.append(b"new %d" % number)
        assert exit_code(child) == 0
        acknowledged, error = json.loads(report.read_text(encoding="utf-8"))
        assert error == "TableLostError"
        found = payloads(queue)
        assert [data for data in found if data.startswith(b"new")] == appended
        assert [data.decode() for data in found if data.startswith(b"old")] == acknowledged
        assert queue.entry_count == len(found)
    assert problems_of(path) == []


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("write", WRITES)
def test_a_writer_stops_within_a_second_of_its_clock(
    write: str,
    lose: Callable[[Path], None],
    queue: quire.JournalQueue,
    path: Path,
    clock: quire.ManualClock,
) -> None:
    appender = queue.appender()
    appender.write_bytes(b"first")
    lose(path)
    clock.advance(SECOND_MS)
    for _ in range(2):
        with pytest.raises(quire.errors.TableLostError, match="open it again") as raised:
            WRITES[write](appender)
        assert TABLE in str(raised.value)
    queue.close()
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as again:
        again.appender().write_bytes(b"again")
        assert payloads(again) == [b"first", b"again"]


def test_a_document_that_was_open_when_the_table_was_lost_is_not_published(
    queue: quire.JournalQueue, path: Path
) -> None:
    appender = queue.appender()
    opened = time.monotonic()
    document = appender.writing_document()
    document.write_bytes(b"lost")
    remove(path)
    while time.monotonic() < opened + 1.1:  # the machine's clock is the one that is looked at
        time.sleep(PACE_S)
    with pytest.raises(quire.errors.TableLostError):
        document.close()
    with quire.open(path, read_only=True) as again:
        assert payloads(again) == []


def test_a_tailer_whose_table_was_replaced_does_not_wait_for_ever(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    """It cannot see the next file in the table it has."""
    queue.appender().write_bytes(b"first")
    tailer = queue.tailer()
    assert tailer.read_bytes() == b"first"
    replace(path)
    clock.advance(DAY_MS)
    with quire.open(path, clock=clock) as other:
        other.appender().write_bytes(b"second")
    with pytest.raises(quire.errors.TableLostError, match="replaced"):
        poll(tailer)


def poll(tailer: quire.JournalTailer) -> None:
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        if tailer.read_bytes() is not None:
            raise AssertionError("the tailer's table does not know of the file")
        time.sleep(PACE_S)


READER = """
path, how = sys.argv[1:]
queue = quire.open(path)
tailer = queue.tailer("risk")
read = [tailer.read_text()]
arm()
try:
    if how == "commit":
        tailer.commit()
    elif how == "close":
        tailer.close()
    else:
        while True:
            text = tailer.read_text()
            read += [] if text is None else [text]
except quire.errors.TableLostError as error:
    say([how, str(error)])
    say(read)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["commit", "close", "read"])
def test_a_named_tailer_whose_table_is_replaced_before_it_stores_stops(
    tmp_path: Path, how: str
) -> None:
    texts = [str(number) for number in range(5)]
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        for text in texts:
            appender.write_text(text)
    with Party(READER, tmp_path / "q", how, point="tailer.index.store") as reader:
        reader.wait_until_stopped()
        replace(tmp_path / "q")
        with quire.open(tmp_path / "q") as queue, queue.tailer("risk") as tailer:
            assert tailer.read_text() == texts[0]
            reader.go_on()
            with queue.appender() as appender:
                # As a writer, it looks once a second, when it stores.
                while how == "read" and reader.process.poll() is None:
                    appender.write_text("more")
                    time.sleep(PACE_S)
            (ended, error), read = reader.result()
            assert tailer.read_text() == texts[1]
    assert ended == how
    assert error.startswith("the queue's table was replaced")
    assert read[0] == texts[0]
    assert how == "read" or len(read) == 1


SYNCER = """
path, = sys.argv[1:]
queue = quire.open(path)
appender = queue.appender()
appender.write_text("last")
arm()
try:
    appender.sync()
except quire.errors.TableLostError as error:
    say(str(error))
"""


@pytest.mark.slow
def test_a_sync_while_the_directory_is_replaced_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "q"
    with Party(SYNCER, path, point="sync.directory.sync") as party:
        party.wait_until_stopped()
        path.rename(tmp_path / "old")
        with quire.open(path) as queue, queue.appender() as appender:
            appender.write_text("of the other")
        party.go_on()
        (error,) = party.result()
    assert error.startswith("the queue's table was replaced")


WRITER = """\
with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
    appender.write_bytes(b"first")
    arm()
    try:
        if sys.argv[2] == "document":
            with appender.writing_document() as document:
                document.write_bytes(b"lost")
        elif sys.argv[2] == "bulk":
            appender.write_many([b"lost", b"lost"])
        else:
            appender.write_bytes(b"lost")
    except quire.errors.TableLostError as raised:
        say(str(raised))
"""


@pytest.mark.parametrize("how", ["once", "bulk", "document"])
def test_a_writer_that_meets_the_writer_of_another_table_says_that_its_own_was_lost(
    how: str, path: Path
) -> None:
    with Party(WRITER, path, how, point="publish.header.cas") as party:
        party.wait_until_stopped()
        remove(path)
        with quire.open(path) as queue, queue.appender() as appender:
            appender.write_bytes(b"of the other")
            party.go_on()
            (error,) = party.result()
            assert payloads(queue) == [b"first", b"of the other"]
    assert error.startswith("the queue's table was replaced")
