"""Messages that land in an earlier cycle: one that had some, was empty, or was not there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from pause_points import Party
from quire.vanilla import FileOptions
from quire.vanilla.replication import Sink, Source
from replication_wire import contents, run

DAY_MS = 86_400_000
NOON_MS = 20_000 * DAY_MS + DAY_MS // 2
SMALL: dict[str, Any] = {"tid_bits": 16, "index_block_bytes": 1024, "data_block_bytes": 4096}
FILES = FileOptions(**SMALL)
LEFT = ["a message", "an empty directory", "a data file", "nothing"]


def opened(path: str | Path, **options: Any) -> quire.vanilla.VanillaQueue:  # noqa: ANN401 - any option
    queue: quire.vanilla.VanillaQueue = open_vanilla(path, **options)
    return queue


class Writers:
    """Two writers at one queue: the slow one is still in the cycle before."""

    def __init__(self, path: Path, pattern: str = "yyyyMMdd") -> None:
        self.slow_clock = quire.ManualClock(NOON_MS)
        self.clock = quire.ManualClock(NOON_MS + DAY_MS)
        self.options: dict[str, Any] = {
            "cycle_format": pattern,
            "linger_s": 2 * 86_400,
            **SMALL,
        }
        self.behind = opened(path, clock=self.slow_clock, **self.options)
        self.queue = opened(path, clock=self.clock, **self.options)
        self.slow, self.quick = self.behind.appender(), self.queue.appender()

    def leave_in_the_cycle_before(self, what: str) -> list[bytes]:
        """What the slow writer has there before its message."""
        folder = Path(self.behind.directory_for_cycle(self.behind.current_cycle))
        if what == "a message":
            self.slow.write_bytes(b"old")
            return [b"old"]
        if what != "nothing":
            folder.mkdir(parents=True)
        if what == "a data file":  # as Java's startExcerpt leaves it
            (folder / "data-77-0").write_bytes(bytes(4096))
        return []

    def close(self) -> None:
        self.queue.close()
        self.behind.close()


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Writers]:
    opened = Writers(tmp_path / "queue")
    yield opened
    opened.close()


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("access", [{}, {"read_only": True}])
def test_a_late_message_is_delivered_whatever_its_cycle_had(
    left: str, access: dict[str, bool], writers: Writers
) -> None:
    old = writers.leave_in_the_cycle_before(left)
    writers.quick.write_bytes(b"new")
    options: dict[str, Any] = writers.options | access
    with opened(writers.queue.path, clock=writers.clock, **options) as queue:
        tailer = queue.tailer()
        assert tailer.read_many(9) == [*old, b"new"]
        writers.slow.write_bytes(b"late")
        assert tailer.read_many(9) == [b"late"]
        writers.slow.write_bytes(b"later")
        writers.quick.write_bytes(b"newer")
        assert sorted(tailer.read_many(9)) == [b"later", b"newer"]


def test_a_late_message_of_a_directory_within_another_is_delivered(tmp_path: Path) -> None:
    writers = Writers(tmp_path / "queue", "yyyy/MM/dd")
    writers.slow_clock.advance(-DAY_MS)
    writers.slow.write_bytes(b"old")
    writers.quick.write_bytes(b"new")
    tailer = writers.queue.tailer()
    assert tailer.read_many(9) == [b"old", b"new"]
    writers.slow_clock.advance(DAY_MS)
    writers.slow.write_bytes(b"late")
    assert tailer.read_many(9) == [b"late"]
    writers.close()


@pytest.mark.parametrize("left", LEFT)
def test_a_tailer_at_the_end_gets_what_comes_later_in_any_cycle(
    left: str, writers: Writers
) -> None:
    writers.leave_in_the_cycle_before(left)
    writers.quick.write_bytes(b"new")
    tailer = writers.queue.tailer()
    tailer.to_end()
    writers.slow.write_bytes(b"late")
    assert tailer.read_many(9) == [b"late"]


def test_a_message_after_the_time_to_linger_is_found_by_a_tailer_that_starts_before_it(
    writers: Writers,
) -> None:
    writers.quick.write_bytes(b"new")
    options: dict[str, Any] = writers.options | {"linger_s": 0.0}
    with opened(writers.queue.path, **options) as queue, queue.tailer() as tailer:
        assert tailer.read_many(9) == [b"new"]
        assert tailer.read_many(9) == []
        writers.slow.write_bytes(b"late")
        assert tailer.read_many(9) == []
        assert queue.tailer().read_many(9) == [b"late", b"new"]


@pytest.mark.parametrize("left", LEFT)
def test_a_named_tailer_gets_what_came_while_it_was_away(left: str, writers: Writers) -> None:
    old = writers.leave_in_the_cycle_before(left)
    writers.quick.write_bytes(b"new")
    with writers.queue.tailer("risk") as tailer:
        assert tailer.read_many(9) == [*old, b"new"]
        assert tailer.read_many(9) == []
    late = writers.slow.write_bytes(b"late")
    if not old:
        assert writers.queue.named_tailers() == [("risk", late)]
    with writers.queue.tailer("risk") as tailer:
        assert tailer.read_many(9) == [b"late"]
    with writers.queue.tailer("risk") as tailer:
        assert tailer.read_many(9) == []


def test_a_named_tailer_repeats_nothing_of_several_earlier_cycles(writers: Writers) -> None:
    writers.slow_clock.advance(-DAY_MS)
    writers.slow.write_bytes(b"1")
    writers.slow_clock.advance(DAY_MS)
    writers.slow.write_bytes(b"2")
    writers.quick.write_bytes(b"3")
    with writers.queue.tailer("risk") as tailer:
        assert tailer.read_many(9) == [b"1", b"2", b"3"]
    writers.slow_clock.advance(-DAY_MS)
    writers.slow.write_bytes(b"late 1")
    writers.slow_clock.advance(DAY_MS)
    writers.slow.write_bytes(b"late 2")
    for _ in range(2):
        with pytest.raises(KeyError), writers.queue.tailer("risk") as tailer:  # noqa: PT012
            assert sorted(tailer.read_many(9)) == [b"late 1", b"late 2"]
            raise KeyError
    with writers.queue.tailer("risk") as tailer:
        assert len(tailer.read_many(9)) == 2
    with writers.queue.tailer("risk") as tailer:
        assert tailer.read_many(9) == []


def test_a_read_of_the_wrong_type_leaves_late_messages_where_they_are(writers: Writers) -> None:
    writers.quick.write_bytes(b"new")
    tailer = writers.queue.tailer()
    assert tailer.read_many(9) == [b"new"]
    writers.slow.write_bytes(b"\xff\xfe")
    for _ in range(2):
        with pytest.raises(quire.errors.WireError):
            tailer.read_text()
    assert tailer.read_many(9) == [b"\xff\xfe"]


@pytest.mark.parametrize("left", LEFT)
def test_a_copy_has_late_messages_and_the_source_knows(
    left: str, writers: Writers, tmp_path: Path
) -> None:
    async def replicate() -> None:
        async with Source(writers.queue, heartbeat_s=0.05) as source:
            port = source.address[1]
            async with Sink(tmp_path / "copy", port=port, acknowledge=True, files=FILES) as sink:
                await source.stored(first)
                late = writers.slow.write_bytes(b"late")
                await source.stored(late)
                await sink.stored(late)
            while source.sinks:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0)
            later = writers.slow.write_bytes(b"later")  # while no sink is there
            async with Sink(tmp_path / "copy", port=port, acknowledge=True, files=FILES) as sink:
                await sink.stored(later)
                last = writers.slow.write_bytes(b"last")
                await source.stored(last)

    writers.leave_in_the_cycle_before(left)
    first = writers.quick.write_bytes(b"new")
    run(replicate())
    with quire.open(tmp_path / "copy", format="vanilla") as copy:
        assert contents(copy) == contents(writers.queue)


def test_a_copy_gets_a_cycle_that_began_between_two_of_its_own_while_it_was_away(
    writers: Writers, tmp_path: Path
) -> None:
    async def replicate(index: int) -> None:
        async with (
            Source(writers.queue, heartbeat_s=0.05) as source,
            Sink(tmp_path / "copy", port=source.address[1], files=FILES) as sink,
        ):
            await sink.stored(index)

    writers.slow_clock.advance(-DAY_MS)
    writers.slow.write_bytes(b"old")
    run(replicate(writers.quick.write_bytes(b"new")))
    writers.slow_clock.advance(DAY_MS)
    run(replicate(writers.slow.write_bytes(b"late")))
    with quire.open(tmp_path / "copy", format="vanilla") as copy:
        assert contents(copy) == contents(writers.queue)


READER = """
import logging
from any_format import open_vanilla
logged = []
class Kept(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())
logging.getLogger("quire").addHandler(Kept())
path, count, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
clock = quire.ManualClock(int(sys.argv[4]))
options = json.loads(sys.argv[5])
with open_vanilla(path, clock=clock, read_only=True, **options) as queue:
    tailer = queue.tailer()
    found = tailer.read_many(first)
    arm()
    found += tailer.read_many(9) + tailer.read_many(9)
    open(path + ".read", "x").close()
    while len(found) < count:
        found += tailer.read_many(9)
    say(sorted(data.decode() for data in found))
    say(logged)
"""


@pytest.mark.slow
@pytest.mark.parametrize("left", ["a message", "nothing"])
@pytest.mark.parametrize("point", ["vanilla.dir.read", "vanilla.dir.stat"])
def test_no_step_of_a_reader_passes_over_what_is_appended_meanwhile(
    point: str, left: str, tmp_path: Path
) -> None:
    nth = 0
    for nth in range(1, 30):
        writers = Writers(tmp_path / str(nth))
        old = writers.leave_in_the_cycle_before(left)
        writers.quick.write_bytes(b"new")
        expected = sorted([it.decode() for it in old] + ["late 1", "late 2", "new"])
        with Party(
            READER, writers.queue.path, len(expected), len(old), writers.clock.now_ms,
            json.dumps(writers.options), point=point, nth=nth,
        ) as reader:  # fmt: skip
            stopped = stands(reader, Path(f"{writers.queue.path}.read"))
            writers.slow.write_many([b"late 1", b"late 2"])
            reader.go_on()
            assert reader.result() == [expected, []]
        writers.close()
        if not stopped:
            break
    assert nth > 2


def stands(party: Party, after: Path) -> bool:
    """Whether a party comes to its point before it makes a file."""
    assert party.stop is not None
    while not party.stop.has_stopped(0.01):
        if after.exists():
            return party.stop.has_stopped(0)
        assert party.process.poll() is None
    return True
