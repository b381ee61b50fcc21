"""Roll files that are deleted under tailers and appenders, finished ones and the newest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, exit_code, fork, payloads, problems_of

pytestmark = pytest.mark.slow

DAYS = 7
SECOND_MS = 1000
Deletion = Callable[[list[Path]], list[Path]]

DELETIONS: dict[str, Deletion] = {
    "passed": lambda files: files[:3],
    "present": lambda files: files[3:4],
    "ahead": lambda files: files[4:6],
    "around": lambda files: files[2:5],
    "all but the newest": lambda files: files[:-1],
    "every other": lambda files: files[::2][:-1],
}


@pytest.fixture
def days(queue: quire.JournalQueue, clock: quire.ManualClock) -> list[Path]:
    """Seven files of three messages each, `day.number`."""
    with queue.appender() as appender:
        for day in range(DAYS):
            appender.write_many([message(day, number) for number in range(3)])
            clock.advance(DAY_MS)
    return [Path(queue.file_for_cycle(cycle)) for cycle in queue.cycles]


def message(day: int, number: int) -> bytes:
    return b"%d.%d" % (day, number)


def delete(files: list[Path]) -> None:
    for file in files:
        file.unlink()


def of_days(days: list[int]) -> list[bytes]:
    return [message(day, number) for day in days for number in range(3)]


@pytest.mark.parametrize("refreshed", ["refreshed", ""])
@pytest.mark.parametrize("name", DELETIONS)
def test_a_tailer_goes_on_with_the_next_file_there_is(
    name: str, refreshed: str, queue: quire.JournalQueue, days: list[Path]
) -> None:
    gone = DELETIONS[name](days)
    left = [day for day, file in enumerate(days) if file not in gone]
    forward, backward, named = queue.tailer(), queue.tailer(), queue.tailer("risk")
    for tailer in (forward, named):
        assert [tailer.read_bytes() for _ in range(10)] == [*of_days([0, 1, 2]), message(3, 0)]
    backward.direction = "backward"
    backward.to_end()
    assert [backward.read_bytes() for _ in range(10)] == of_days([3, 4, 5, 6])[:1:-1]
    delete(gone)
    if refreshed:
        queue.refresh()
    # What is open stays readable to its end; from then on what is there counts.
    rest = of_days([3])[1:] + of_days([day for day in left if day > 3])
    assert list(forward.payloads()) == rest
    assert list(named.payloads()) == rest
    before = of_days([day for day in left if day < 3])
    assert list(backward.payloads()) == [*of_days([3])[1::-1], *before[::-1]]
    for tailer in (forward, backward):
        tailer.direction = "forward"
        tailer.to_start()
        assert list(tailer.payloads()) == of_days(left)


@pytest.mark.parametrize("name", DELETIONS)
def test_a_named_tailer_resumes_after_what_was_deleted(
    name: str, queue: quire.JournalQueue, path: Path, clock: quire.ManualClock, days: list[Path]
) -> None:
    with queue.tailer("risk") as tailer:
        assert [tailer.read_bytes() for _ in range(10)] == [*of_days([0, 1, 2]), message(3, 0)]
    queue.close()
    gone = DELETIONS[name](days)
    delete(gone)
    left = [day for day, file in enumerate(days) if file not in gone]
    with quire.open(path, clock=clock) as again, again.tailer("risk") as tailer:
        found = list(tailer.payloads()) + list(tailer.payloads())
        present = of_days([3])[1:] if 3 in left else []
        assert found == present + of_days([day for day in left if day > 3])


def test_a_deleted_index_is_not_found(queue: quire.JournalQueue, days: list[Path]) -> None:
    tailer = queue.tailer()
    excerpts = {excerpt.data: excerpt.index for excerpt in queue.tailer()}
    index = excerpts[message(2, 1)]
    delete(days[2:3])
    queue.refresh()
    assert not tailer.move_to_index(index)
    assert tailer.state == "CYCLE_NOT_FOUND"
    assert tailer.move_to_index(excerpts[message(3, 1)])
    assert tailer.read_bytes() == message(3, 1)


def test_a_queue_without_files_starts_over(
    queue: quire.JournalQueue, days: list[Path], path: Path, clock: quire.ManualClock
) -> None:
    tailer, named = queue.tailer(), queue.tailer("risk")
    named.to_end()
    delete(days)
    queue.refresh()
    assert queue.cycles == []
    assert (queue.first_index, queue.last_index, queue.entry_count) == (None, None, 0)
    assert tailer.read() is None
    tailer.to_start()
    assert tailer.read() is None
    queue.appender().write_bytes(b"new")
    assert payloads(queue) == [b"new"]
    assert list(tailer.payloads()) == [b"new"]
    with quire.open(path, clock=clock) as again:
        assert payloads(again) == [b"new"]


@pytest.mark.parametrize("write", ["write_bytes", "write_many", "writing_document"])
def test_an_appender_leaves_a_newest_file_that_was_deleted(
    write: str,
    queue: quire.JournalQueue,
    path: Path,
    clock: quire.ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def append(data: bytes) -> int | None:
        if write == "writing_document":
            with appender.writing_document() as document:
                document.write_bytes(data)
            return document.index
        return appender.write_many([data]) if write == "write_many" else appender.write_bytes(data)

    appender, attached = queue.appender(), queue.tailer()
    first = append(b"first")
    assert attached.read_bytes() == b"first"
    append(b"second")
    delete([*path.glob("*.cq4")])
    with pytest.raises(FileNotFoundError, match="cannot sync"):
        appender.sync()
    clock.advance(SECOND_MS)
    after = append(b"after")
    assert first is not None
    assert after is not None
    assert after >> 32 == (first >> 32) + 1, "in a file of the next cycle"
    assert "had been removed" in caplog.text
    assert payloads(queue) == [b"after"]
    # The tailer reads what it has open, and finds its way.
    assert list(attached.payloads()) == [b"second", b"after"]
    assert append(b"more") == after + 1
    with quire.open(path, clock=clock) as other:
        assert other.appender().write_bytes(b"other") == after + 2
    appender.sync()
    assert problems_of(path) == []


def test_no_index_is_given_twice_where_the_next_file_could_not_be_made(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    """The second append finds no file at all, but knows what the appender has left."""
    appender = queue.appender()
    first = appender.write_bytes(b"first")
    (file,) = path.glob("*.cq4")
    in_the_way = Path(queue.file_for_cycle(queue.cycles[0] + 1))
    delete([file])
    in_the_way.mkdir()
    clock.advance(SECOND_MS)
    for _ in range(2):
        with pytest.raises((quire.QuireError, OSError), match=in_the_way.name):
            appender.write_bytes(b"refused")
    in_the_way.rmdir()
    after = appender.write_bytes(b"after")
    assert after >> 32 == (first >> 32) + 1
    assert not file.exists()
    assert payloads(queue) == [b"after"]


def test_messages_lost_to_a_deletion_are_those_of_a_second(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    appender = queue.appender()
    appender.write_bytes(b"first")
    delete([*path.glob("*.cq4")])
    for number in range(100):
        clock.advance(SECOND_MS // 10)
        appender.write_bytes(b"%d" % number)
    found = payloads(queue)
    assert found == [b"%d" % number for number in range(100 - len(found), 100)]
    assert len(found) >= 100 - SECOND_MS // 100


def test_appenders_of_two_processes_meet_again_after_a_deleted_file(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    appender = queue.appender()
    appender.write_bytes(b"first")
    go, going = os.pipe()
    ready, tell = os.pipe()

    def other() -> None:
        with quire.open(path, clock=quire.ManualClock(clock.now_ms)) as own:
            second = own.appender()
            second.write_bytes(b"of the other")
            os.write(tell, b"x")
            os.read(go, 1)
            second.write_bytes(b"of the other after")  # at a clock that stands still

    child = fork(other)
    os.read(ready, 1)
    delete([*path.glob("*.cq4")])
    clock.advance(SECOND_MS)
    appender.write_bytes(b"after")
    os.write(going, b"x")
    assert exit_code(child) == 0
    assert payloads(queue) == [b"after", b"of the other after"]


def test_an_appender_whose_queue_was_deleted_says_so(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    appender = queue.appender()
    appender.write_bytes(b"first")
    delete([*path.iterdir()])
    clock.advance(SECOND_MS)
    for _ in range(2):
        with pytest.raises(
            quire.errors.TableLostError, match="was removed while the queue was open"
        ):
            appender.write_bytes(b"lost")
    with quire.open(path, clock=clock) as again:
        again.appender().write_bytes(b"again")
        assert payloads(again) == [b"again"]
