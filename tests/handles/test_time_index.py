"""Append times in side files: `move_to_time` within a cycle, without a field of the messages."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

import quire
from queues import DAY_MS, START_MS
from quire.cli import main
from quire.errors import UnsupportedError

HEADER, POINT = 64, 16
NO_INDEX = "cannot seek inside a cycle without a time index"

PRODUCER = """\
import sys, time, quire
with quire.open(sys.argv[1], time_index=True, block_bytes=2**16) as queue:
    appender = queue.appender()
    for number in range(int(sys.argv[2])):
        appender.write_map({"at": time.time_ns()})
        if number == 20:
            print("begun", flush=True)
"""


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(milliseconds=ms)


def side_file(path: Path) -> Path:
    (found,) = path.glob("*.times.quire")
    return found


def write(
    path: Path, *times_ms: int, time_index: bool = True, roll_cycle: str | None = None
) -> None:
    """Append a message at each time after the start."""
    clock = quire.ManualClock(START_MS)
    with quire.open(
        path, clock=clock, time_index=time_index, block_bytes=2**16, roll_cycle=roll_cycle
    ) as queue:
        appender = queue.appender()
        for ms in times_ms:
            clock.now_ms = START_MS + ms
            appender.write_map({"ms": ms})


def first_at(path: Path, ms: int) -> int | None:
    """The time that the first message found has; None if there is none."""
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        found = tailer.move_to_time(at(ms))
        message = tailer.read_map()
        assert found is (message is not None)
        return None if message is None else message["ms"]


def times_of(queue: quire.JournalQueue, *indexes: int) -> list[int | None]:
    return queue._append_times_ms([*indexes])  # pyright: ignore[reportPrivateUsage]


def all_found(path: Path) -> list[int | None]:
    return [first_at(path, ms) for ms in (15, 25, 35)]


def test_the_next_message_is_the_first_appended_at_or_after_the_time(path: Path) -> None:
    times = [5, 5, 6, 1000, 1000, 1001, 70_000]
    write(path, *times)
    for ms in [1, 4, 5, 6, 7, 999, 1000, 1001, 1002, 69_999, 70_000, 70_001]:
        assert first_at(path, ms) == next((it for it in times if it >= ms), None), ms


def test_a_file_of_more_than_one_piece(path: Path) -> None:
    random = Random(7)  # noqa: S311 - to be repeated
    times, now = list[int](), 1
    for _ in range(9000):  # more than 64 KiB of points
        now += random.choice([0, 1, 1, 2, 40])
        times.append(now)
    write(path, *times)
    assert side_file(path).stat().st_size > 2**16
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        for ms in random.sample(range(1, now + 3), 300):
            expected = next((it for it in times if it >= ms), None)
            assert tailer.move_to_time(at(ms)) is (expected is not None)
            assert (tailer.read_map() or {}).get("ms") == expected


def test_every_way_to_append_keeps_times(path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, time_index=True) as queue, queue.tailer() as tailer:
        appender = queue.appender()

        def document() -> None:
            with appender.writing_document() as document:
                document.write_bytes(b"text")

        writes: list[Callable[[], object]] = [
            lambda: appender.write_bytes(b"text"),
            lambda: appender.write_many([b"text", b"text"]),
            lambda: appender.write_text("text"),
            lambda: appender.write_yaml("a: 1"),
            document,
        ]
        begun = list[int]()
        for write_one in writes:
            clock.advance(10)
            begun.append(0 if queue.last_index is None else queue.last_index + 1)
            write_one()
        for number, index in enumerate(begun[1:], 1):
            assert tailer.move_to_time(at(10 * number + 1))
            assert tailer.index == index


def test_the_times_of_messages_are_those_of_their_appends(path: Path) -> None:
    random = Random(3)  # noqa: S311 - to be repeated
    times = [random.randrange(1, 100_000) for _ in range(200)]
    write(path, *sorted(times))
    with quire.open(path, read_only=True) as queue:
        first = queue.first_index
        assert first is not None
        places = random.sample(range(200), 50)
        for chosen in (sorted(places), places, [*range(200)], [7, 7, 3]):
            known = [START_MS + sorted(times)[it] for it in chosen]
            assert times_of(queue, *(first + it for it in chosen)) == known
        assert times_of(queue, first + 199, first + 200) == [START_MS + max(times), None]
        assert times_of(queue) == []
        with pytest.raises(quire.errors.IndexOutOfRangeError):
            times_of(queue, -1)
    write(path, 100_001, time_index=False)
    with quire.open(path, read_only=True) as queue:
        assert times_of(queue, first + 200) == [None]


def test_the_times_of_messages_of_several_cycles(path: Path) -> None:
    """One of which has no times, and one of which does not exist."""
    days = [0, 1, 2]
    for day in days:
        write(path, *(day * DAY_MS + it for it in (1, 2, 2, 9)), time_index=day != 1)
    with quire.open(path, read_only=True) as queue:
        starts = [queue.roll_cycle.to_index(it, 0) for it in queue.cycles]
        assert len(starts) == len(days)
        found = times_of(queue, *(start + it for start in starts for it in range(4)))
        own = [START_MS + it for it in (1, 2, 2, 9)]
        assert found == [*own, *[None] * 4, *(it + 2 * DAY_MS for it in own)]
        assert times_of(queue, starts[2], starts[0]) == [own[0] + 2 * DAY_MS, own[0]]
        assert times_of(queue, queue.roll_cycle.to_index(queue.cycles[-1] + 5, 0)) == [None]


def test_asynchronous_appends_have_the_time_at_which_they_were_drained(path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, clock=clock, time_index=True, buffer_mode="async") as queue,
        queue.appender() as appender,
    ):
        assert queue.ring is not None
        for ms in (10, 20):
            clock.now_ms = START_MS + ms
            appender.write_map({"ms": ms})
            queue.ring.flush()
    assert [first_at(path, ms) for ms in (10, 11, 21)] == [10, 20, None]


def test_two_cycles_have_files_of_their_own(path: Path) -> None:
    times = [10, 20, DAY_MS + 10, DAY_MS + 20]
    write(path, *times)
    assert len([*path.glob("*.times.quire")]) == 2
    for ms in [11, 20, 21, DAY_MS, DAY_MS + 11, DAY_MS + 20]:
        assert first_at(path, ms) == next(it for it in times if it >= ms)
    assert first_at(path, DAY_MS + 21) is None


def test_a_time_just_after_the_start_of_a_cycle(path: Path) -> None:
    to_midnight = DAY_MS - START_MS % DAY_MS
    write(path, to_midnight, to_midnight + 1)
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.move_to_time(at(to_midnight) + timedelta(microseconds=500))
        assert (tailer.read_map() or {})["ms"] == to_midnight


def test_a_clock_that_goes_back_has_messages_count_as_of_the_latest_time(path: Path) -> None:
    write(path, 10, 50, 30, 60)
    assert [first_at(path, ms) for ms in (11, 31, 50, 51)] == [50, 50, 50, 60]


def test_a_clock_of_the_caller(path: Path) -> None:
    now = [START_MS]
    with quire.open(path, clock=lambda: now[0], time_index=True) as queue:
        for ms in (10, 20):
            now[0] = START_MS + ms
            queue.appender().write_map({"ms": ms})
    assert [first_at(path, ms) for ms in (10, 11, 20, 21)] == [10, 20, 20, None]


def test_without_an_index_only_the_start_of_a_cycle_is_found(path: Path) -> None:
    write(path, 10, time_index=False)
    assert not [*path.glob("*.times.quire")]
    with pytest.raises(ValueError, match=NO_INDEX):
        first_at(path, 5)


def test_messages_without_a_point_count_as_of_the_next_one(path: Path) -> None:
    """As after a kill between an append and its point, or beside writers that keep no times."""
    write(path, 10)
    write(path, 20, 30, time_index=False)
    write(path, 40)
    assert [first_at(path, ms) for ms in (10, 11, 25, 40)] == [10, 20, 20, 20]
    assert first_at(path, 41) is None
    write(path, 50, time_index=False)
    assert first_at(path, 60) == 50


def test_a_writer_that_comes_later_goes_on(path: Path) -> None:
    for ms in range(10, 60, 10):
        write(path, ms)
    assert [first_at(path, ms) for ms in (11, 30, 41, 51)] == [20, 30, 50, None]


@pytest.mark.parametrize("left", [0, HEADER, 8])
def test_a_file_that_was_being_made_is_completed(path: Path, left: int) -> None:
    """A kill at any step of making it leaves part of the header."""
    write(path, 10)
    file = side_file(path)
    content = bytearray(file.read_bytes())
    content[0 if left == HEADER else left :] = bytes(len(content) - (0 if left == HEADER else left))
    file.write_bytes(content[: left and len(content)])
    with pytest.raises(ValueError, match=NO_INDEX):
        first_at(path, 5)
    write(path, 20, 30)
    assert [first_at(path, ms) for ms in (5, 20, 21, 31)] == [10, 10, 30, None]


def test_a_point_without_its_count_says_nothing(path: Path) -> None:
    """A kill between the two words of a point leaves the time alone."""
    write(path, 10, 20, 30)
    file = side_file(path)
    content = bytearray(file.read_bytes())
    content[HEADER + 2 * POINT + 8 : HEADER + 3 * POINT] = bytes(8)
    file.write_bytes(content)
    assert [first_at(path, ms) for ms in (20, 21, 31)] == [20, 30, 30]
    with quire.open(path, read_only=True) as queue:
        first = queue.first_index
        assert first is not None
        assert times_of(queue, first + 1, first + 2) == [START_MS + 20, None]
    write(path, 30, 40)
    assert [first_at(path, ms) for ms in (21, 31, 41)] == [30, 40, None]


def damage(file: Path, change: Callable[[bytearray], None]) -> None:
    content = bytearray(file.read_bytes())
    change(content)
    file.write_bytes(content)


def swap_points(content: bytearray) -> None:
    first, third = slice(HEADER, HEADER + POINT), slice(HEADER + 2 * POINT, HEADER + 3 * POINT)
    content[first], content[third] = content[third], content[first]


def flip(position: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        content[position] ^= 0x10

    return change


@pytest.mark.parametrize(
    "change", [flip(3), flip(9), flip(HEADER + 2), flip(HEADER + POINT + 10), swap_points]
)
def test_a_damaged_file_is_not_used(
    path: Path, change: Callable[[bytearray], None], caplog: pytest.LogCaptureFixture
) -> None:
    write(path, 10, 20, 30)
    damage(side_file(path), change)
    with pytest.raises(ValueError, match=NO_INDEX):
        all_found(path)
    assert "append times are not used" in caplog.text
    with quire.open(path, read_only=True) as queue:
        first = queue.first_index
        assert first is not None
        assert times_of(queue, first, first + 1, first + 2) == [None] * 3
    write(path, 40)
    with quire.open(path, read_only=True) as queue:
        assert queue.entry_count == 4


def test_a_file_of_another_cycle_is_not_used(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(path, 10, DAY_MS + 10, DAY_MS + 20)
    first, second = sorted(path.glob("*.times.quire"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(ValueError, match=NO_INDEX):
        first_at(path, 5)
    assert "points of this cycle" in caplog.text


def test_a_file_that_speaks_of_lost_messages_is_not_used(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The cycle's messages were lost, or Java made it again."""
    write(path, 10, 20, 30)
    times = side_file(path).read_bytes()
    (roll_file,) = path.glob("*.cq4")
    roll_file.unlink()
    with quire.open(path) as queue:
        queue.refresh()
    write(path, 14, time_index=False)
    roll_file.with_suffix(".times.quire").write_bytes(times)
    write(path, 15)
    assert "append times are no longer written" in caplog.text
    with pytest.raises(ValueError, match=NO_INDEX):
        first_at(path, 12)
    assert "at most the messages of the cycle" in caplog.text


def test_a_restart_that_lost_messages_ends_the_index(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is appended in their places would count as of the time of what was lost."""
    write(path, *range(10, 400))
    (roll_file,) = path.glob("*.cq4")
    with quire.open(path, read_only=True) as queue:
        end, _, _ = queue.end_of_cycle(queue.cycles[0]) or (0, 0, False)
    with roll_file.open("r+b") as file:
        file.seek(end - 64)
        file.write(bytes(64))
    os.utime(roll_file, (1_700_000_000, 1_700_000_000))
    write(path, *range(500, 600), time_index=False)
    with pytest.raises(ValueError, match=NO_INDEX):
        first_at(path, 15)
    assert "points of this cycle" in caplog.text


def as_link(file: Path, elsewhere: Path) -> None:
    elsewhere.write_bytes(file.read_bytes() if file.exists() else b"other")
    file.unlink(missing_ok=True)
    file.symlink_to(elsewhere)


def as_folder(file: Path, _: Path) -> None:
    file.unlink()
    file.mkdir()


def as_pipe(file: Path, _: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("change", [as_link, as_folder, as_pipe])
def test_what_is_no_regular_file_is_neither_read_nor_written(
    path: Path,
    tmp_path: Path,
    change: Callable[[Path, Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(path, 10, 20)
    elsewhere = tmp_path / "elsewhere"
    change(side_file(path), elsewhere)
    before = elsewhere.read_bytes() if elsewhere.exists() else None
    write(path, 30)
    assert "append times are no longer written" in caplog.text
    assert before is None or elsewhere.read_bytes() == before
    with pytest.raises(ValueError, match=NO_INDEX):
        first_at(path, 15)


def test_the_option_is_checked_and_kept(path: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="time_index"):
        quire.open(path, time_index="yes")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
    for name in ("vanilla", "quick-queue"):
        with pytest.raises(UnsupportedError, match="time_index=True"):
            quire.open(tmp_path / name, format=name, time_index=True)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    with quire.open(path, time_index=True) as queue:
        again = pickle.loads(pickle.dumps(queue))
        again.appender().write_text("hello")
        again.close()
    assert side_file(path)


def test_other_verbs_do_not_mind_the_file(path: Path) -> None:
    write(path, 10, 20, DAY_MS)
    names = sorted(it.name for it in path.glob("*.times.quire"))
    assert quire.verify(path).ok
    assert not quire.repair(path).actions
    for verb in ("stat", "verify", "repair", "refresh"):
        assert main([verb, str(path)]) == 0, verb
    assert sorted(it.name for it in path.glob("*.times.quire")) == names
    assert first_at(path, 11) == 20


@pytest.mark.parametrize("action", ["delete", "move", "compress"])
def test_a_cycle_that_retention_removes_takes_its_times_along(
    path: Path, tmp_path: Path, action: str
) -> None:
    write(path, 10, 20, DAY_MS + 10, 2 * DAY_MS)
    first = min(path.glob("*.times.quire"))
    dest = tmp_path / "moved" if action == "move" else None
    quire.prune(
        path,
        max_cycles=2,
        action=action,  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        dest=dest,
        clock=quire.ManualClock(START_MS + 2 * DAY_MS),
    )
    assert first.exists() is (action == "compress")
    if action == "compress":
        assert first_at(path, 11) == 20
    if dest is not None:
        assert (dest / first.name).exists()
    assert first_at(path, DAY_MS + 5) == DAY_MS + 10


def test_a_copy_has_the_times_of_its_messages(path: Path, tmp_path: Path) -> None:
    write(path, 10, 20, 20, 40, DAY_MS + 10)
    assert quire.copy_queue(path, tmp_path / "copy").messages == 5
    for ms in (5, 11, 20, 21, 41, DAY_MS + 5, DAY_MS + 10):
        assert first_at(tmp_path / "copy", ms) == first_at(path, ms)
    write(tmp_path / "copy", DAY_MS + 30)
    assert first_at(tmp_path / "copy", DAY_MS + 11) == DAY_MS + 30


def test_times_of_messages_that_are_not_in_the_copy_are_left_out(
    path: Path, tmp_path: Path
) -> None:
    """They were appended after the end of their file was found."""
    write(path, 10, 20)
    later = [*range(30, 9000, 3)]  # more than 64 KiB of points, with those before

    def append_once(what: str, *_: int) -> None:
        if later and what.startswith("copying "):
            write(path, *later)
            later.clear()

    assert quire.copy_queue(path, tmp_path / "copy", progress=append_once).messages == 2
    assert not later
    assert [first_at(tmp_path / "copy", ms) for ms in (5, 11, 20)] == [10, 20, 20]
    assert first_at(tmp_path / "copy", 21) is None
    write(tmp_path / "copy", 7000, 8000)
    found = [first_at(tmp_path / "copy", ms) for ms in (11, 30, 7000, 7001, 8001)]
    assert found == [20, 7000, 7000, 8000, None]


@pytest.mark.parametrize("change", [flip(3), flip(HEADER + 2), as_link, as_folder, as_pipe])
def test_a_copy_leaves_out_times_that_are_not_usable(
    path: Path, tmp_path: Path, change: Callable[..., None]
) -> None:
    write(path, 10, 20)
    if change in {as_link, as_folder, as_pipe}:
        change(side_file(path), tmp_path / "elsewhere")
    else:
        damage(side_file(path), change)
    assert quire.copy_queue(path, tmp_path / "copy").messages == 2
    assert not [*(tmp_path / "copy").glob("*.times.quire")]


def test_times_of_a_deleted_roll_file_are_removed_when_it_is_made_again(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(path, 0, 10, 20)
    stale = side_file(path)
    for file in path.glob("*.cq4*"):
        file.unlink()

    write(path, 30, time_index=False)
    assert "append times of a deleted roll file were removed" in caplog.text
    assert not stale.exists()
    write(path, 40, 50, 60)
    assert [first_at(path, ms) for ms in (30, 40, 50, 60, 61)] == [30, 30, 50, 60, None]


@pytest.mark.parametrize("ends", ["normally", "killed"])
def test_processes_that_append_together_miss_no_message(path: Path, ends: str) -> None:
    count = 600 if ends == "normally" else 10**9
    command = [sys.executable, "-c", PRODUCER, str(path), str(count)]
    producers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    for producer in producers:
        assert producer.stdout is not None
        assert producer.stdout.readline() == b"begun\n"
        if ends == "killed":
            producer.send_signal(signal.SIGKILL)
    for producer in producers:
        producer.communicate()
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        messages = [(it.index, it.to_dict()["at"]) for it in tailer]
        step = max(1, len(messages) // 200)
        for index, time_ns in messages[::step]:
            time = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time_ns // 1000)
            assert tailer.move_to_time(time)
            assert tailer.index <= index


def test_an_index_is_built_later(path: Path) -> None:
    """Out of order, a message counts as of the latest time; without the field, as of the next."""
    times = [10, 20, None, 15, 30, None]
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        for number, ms in enumerate(times):
            appender.write_map({"ms": number} | ({} if ms is None else {"at": START_MS + ms}))
        clock.advance(DAY_MS)
        appender.write_map({"ms": len(times), "at": START_MS + DAY_MS + 10})
        cycles = queue.cycles
    assert quire.maintenance.build_time_index(path, time_field="at") == cycles
    assert quire.maintenance.build_time_index(path, time_field="at") == []
    found = [first_at(path, ms) for ms in (5, 10, 11, 20, 21, 30, 31, DAY_MS + 10)]
    assert found == [0, 0, 1, 1, 4, 4, 5, 6]
    assert first_at(path, DAY_MS + 11) is None


def test_a_damaged_index_is_built_again(path: Path) -> None:
    write(path, 10, 20, 30)
    damage(side_file(path), flip(0))
    with pytest.raises(ValueError, match="no message has the field: field=at"):
        quire.maintenance.build_time_index(path, time_field="at")
    with quire.open(path, clock=quire.ManualClock(START_MS)) as queue:
        queue.appender().write_map({"at": START_MS + 40, "ms": 40})
    assert len(quire.maintenance.build_time_index(path, time_field="at")) == 1
    assert [first_at(path, ms) for ms in (40, 41)] == [10, None]


def test_building_needs_a_queue_that_has_cycles(tmp_path: Path) -> None:
    with quire.open(tmp_path / "old", format="quick-queue"):
        pass
    with pytest.raises(quire.errors.NotAQueueError):
        quire.maintenance.build_time_index(tmp_path / "old", time_field="at")
    with pytest.raises(quire.errors.NotAQueueError):
        quire.maintenance.build_time_index(tmp_path / "missing", time_field="at")


@pytest.mark.parametrize("next_cycle_has", [0, 1])
def test_what_was_appended_after_its_cycle_was_over_is_found(
    next_cycle_has: int, path: Path
) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, time_index=True, roll_cycle="TEST_SECONDLY") as queue:
        appender = queue.appender()
        appender.write_map({"ms": 0})
        clock.now_ms = START_MS + 999
        with appender.writing_document() as document:
            document.write("ms", 1002)  # as the coarse clock has it, which chooses the cycle
            clock.now_ms = START_MS + 1002
        for _ in range(next_cycle_has):
            clock.now_ms = START_MS + 1004
            appender.write_map({"ms": 1004})
        assert len(queue.cycles) == 1 + next_cycle_has
    last = 1004 if next_cycle_has else None
    found = {1000: 1002, 1001: 1002, 1002: 1002, 1003: last, 1004: last}
    assert {ms: first_at(path, ms) for ms in found} == found
