"""Every cycle is compared with the source's: what is missing comes, differences are exact."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quire
from parameters import some
from queues import DAY_MS, START_MS, problems_of
from quire.errors import DivergedError, QuireError
from quire.replication import Sink, Source, passed_cycles
from quire.replication.cycle_search import CycleSearch, DiffersIn, LacksBefore, Same
from quire.replication.digests import NAME, CycleDigests
from replicas import WAIT_S, messages, replicate, wait_until

DAYS, EACH = 6, 5


def written(path: Path, days: int = DAYS) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=1 << 16, clock=clock) as queue:
        for day in range(days):
            queue.appender().write_many([b"day %d message %d" % (day, it) for it in range(EACH)])
            clock.advance(DAY_MS)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source and its copy, to be copied for each test."""
    path = tmp_path_factory.mktemp("prepared")
    written(path / "source")
    replicate(path / "source", path / "copy")
    return path


@pytest.fixture
def pair(prepared: Path, tmp_path: Path) -> tuple[Path, Path]:
    shutil.copytree(prepared, tmp_path / "pair")
    return tmp_path / "pair" / "source", tmp_path / "pair" / "copy"


def files(path: Path) -> list[Path]:
    return sorted(path.glob("*.cq4"))


def flip(file: Path, payload: bytes) -> None:
    """Change one byte of a message."""
    at = file.read_bytes().index(payload)
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(bytes([payload[0] ^ 1]))


def shorten(path: Path, day: int, kept: int) -> None:
    """Have a day's file be one that ended earlier."""
    other = path.with_name(f"shorter-{day}")
    clock = quire.ManualClock(START_MS + day * DAY_MS)
    with quire.open(other, roll_cycle="TEST4_DAILY", block_bytes=1 << 16, clock=clock) as queue:
        queue.appender().write_many([b"day %d message %d" % (day, it) for it in range(kept)])
    [file] = files(other)
    shutil.copy(file, path / file.name)


class Held:
    """The digests of cycles, without a queue."""

    def __init__(self, held: dict[int, int]) -> None:
        self.held = held

    def of_range(self, first: int, last: int) -> tuple[int, bytes]:
        found = [it for it in sorted(self.held.items()) if first <= it[0] <= last]
        return len(found), repr(found).encode()


def expected(source: dict[int, int], own: dict[int, int]) -> Same | DiffersIn | LacksBefore:
    first, newest = max(min(source), min(own)), max(own)
    different = [it for it in range(first, newest) if source.get(it) != own.get(it)]
    if not different:
        return Same()
    if different[0] in own:
        return DiffersIn(different[0])
    return LacksBefore(min(it for it in own if it > different[0]))


CYCLES = st.dictionaries(st.integers(0, 12), st.integers(0, 2), min_size=1)


@pytest.mark.check
@given(source=CYCLES, own=CYCLES)
@settings(max_examples=500, deadline=None)
def test_the_first_cycle_that_differs_is_found(source: dict[int, int], own: dict[int, int]) -> None:
    search = CycleSearch(cast("CycleDigests", Held(own)), sorted(own), min(source))
    found: Same | DiffersIn | LacksBefore | None = None if search.is_needed else Same()
    questions = 0
    while found is None:
        asked = search.asked
        found = search.answer(asked, min(source), *Held(source).of_range(*asked))
        questions += 1
    assert found == expected(source, own)
    assert questions <= 6


@pytest.mark.check
@given(changed=st.sets(st.tuples(st.integers(0, DAYS - 1), st.integers(0, EACH - 1)), min_size=1))
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_first_difference_is_exact(
    changed: set[tuple[int, int]], prepared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("flipped") / "pair"
    shutil.copytree(prepared, path)
    origin, copy = path / "source", path / "copy"
    for day, number in changed:
        flip(files(copy)[day], b"day %d message %d" % (day, number))
    before, (day, number) = messages(copy), min(changed)
    with pytest.raises(DivergedError) as caught:
        replicate(origin, copy)
    assert caught.value.index == messages(origin)[day * EACH + number][0]
    assert messages(copy) == before
    replicate(origin, copy, repair=True)
    assert messages(copy) == messages(origin)
    assert problems_of(copy) == []
    shutil.rmtree(path)


def test_a_cycle_without_messages_is_no_difference(tmp_path: Path) -> None:
    origin, copy = tmp_path / "source", tmp_path / "copy"
    clock = quire.ManualClock(START_MS)
    with quire.open(origin, roll_cycle="TEST4_DAILY", block_bytes=1 << 16, clock=clock) as queue:
        for day in range(4):
            with queue.appender().writing_document() as document:
                document.write_bytes(b"%d" % day)
                if day in {0, 2}:
                    document.rollback_on_close()
            clock.advance(DAY_MS)
    for _ in range(2):
        replicate(origin, copy)
        assert messages(copy) == messages(origin)
    assert len(files(origin)) == 4
    assert len(files(copy)) == 2
    assert not (copy / "aside").exists()


@pytest.mark.check
def test_a_whole_file_that_is_missing_comes_again_encrypted(tmp_path: Path) -> None:
    origin, copy, key = tmp_path / "source", tmp_path / "copy", bytes(range(32))
    clock = quire.ManualClock(START_MS)
    with quire.open(origin, roll_cycle="TEST4_DAILY", clock=clock, key=key) as queue:
        for day in range(3):
            queue.appender().write_many([b"%d.%d" % (day, it) for it in range(EACH)])
            clock.advance(DAY_MS)
    replicate(origin, copy, key=key)
    files(copy)[1].unlink()
    with quire.open(copy, key=key) as queue:
        queue.refresh()
    replicate(origin, copy, key=key)
    assert messages(copy, key) == messages(origin, key)
    assert problems_of(copy) == []


@pytest.mark.parametrize("day", some([1, 3, DAYS - 1], keep={2}))
def test_a_whole_file_that_is_missing_comes_again(pair: tuple[Path, Path], day: int) -> None:
    origin, copy = pair
    files(copy)[day].unlink()
    with quire.open(copy) as queue:
        queue.refresh()
    replicate(origin, copy)
    assert messages(copy) == messages(origin)
    assert problems_of(copy) == []


@pytest.mark.parametrize("day", some([0, 2, DAYS - 1], keep={0}))
def test_a_file_that_was_restored_from_an_old_copy_is_completed(
    pair: tuple[Path, Path], day: int
) -> None:
    origin, copy = pair
    shorten(copy, day, 2)
    replicate(origin, copy)
    assert messages(copy) == messages(origin)
    assert problems_of(copy) == []


def test_a_file_that_cannot_be_read_is_put_aside_when_that_is_asked_for(
    pair: tuple[Path, Path],
) -> None:
    origin, copy = pair
    with files(copy)[2].open("r+b") as file:
        file.write(b"\xff" * 64)
    with pytest.raises(DivergedError) as caught:
        replicate(origin, copy)
    assert caught.value.index == messages(origin)[2 * EACH][0]
    replicate(origin, copy, repair=True)
    assert messages(copy) == messages(origin)


def test_a_cycle_that_comes_before_those_that_were_sent_reaches_a_sink_that_is_connected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    origin, copy = tmp_path / "source", tmp_path / "copy"
    written(origin, days=5)
    (_, _, late, gone, _) = files(origin)  # no cycle precedes or follows the late one at once
    gone.unlink()
    missing = late.rename(tmp_path / late.name)
    with quire.open(origin, block_bytes=1 << 16) as queue:
        queue.refresh()

    async def work() -> None:
        with quire.open(origin, block_bytes=1 << 16) as queue:
            last = queue.last_index
            assert last is not None
            async with (
                Source(queue) as source,
                Sink(copy, port=source.address[1], reconnect_s=0.01) as sink,
            ):
                await asyncio.wait_for(sink.stored(last), WAIT_S)
                missing.rename(late)
                queue.refresh()  # as a Java writer does whose clock is late
                await asyncio.to_thread(wait_until, lambda: len(messages(copy)) == 4 * EACH)

    asyncio.run(work())
    assert messages(copy) == messages(origin)
    assert problems_of(copy) == []
    assert "messages came in a cycle before those that a sink has" in caplog.text


def test_messages_that_come_to_an_earlier_cycle_reach_a_sink_that_is_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed_cycles, "_QUIET_CHECKS", 1)
    origin, copy, other = tmp_path / "source", tmp_path / "copy", tmp_path / "other"
    written(origin, days=3)

    def append_early(data: bytes) -> None:
        """Append to a cycle before those, as a Java writer does whose clock is late."""
        clock = quire.ManualClock(START_MS - 2 * DAY_MS)
        with quire.open(other, roll_cycle="TEST4_DAILY", block_bytes=1 << 16, clock=clock) as queue:
            queue.appender().write_bytes(data)
        [file] = files(other)
        with (origin / file.name).open("r+b" if (origin / file.name).exists() else "xb") as early:
            early.write(file.read_bytes())

    def has_all() -> bool:
        """Whether the copy has everything; its files may be moved while they are read."""
        with suppress(QuireError, OSError):
            return len(messages(copy)) == 3 * EACH + 2
        return False

    append_early(b"early")

    async def work() -> None:
        with quire.open(origin, block_bytes=1 << 16) as queue:
            queue.refresh()
            last = queue.last_index
            assert last is not None
            async with (
                Source(queue) as source,
                Sink(copy, port=source.address[1], reconnect_s=0.01) as sink,
            ):
                await asyncio.wait_for(sink.stored(last), WAIT_S)
                append_early(b"late")
                await asyncio.to_thread(wait_until, has_all)

    asyncio.run(work())
    assert messages(copy) == messages(origin)


@pytest.mark.parametrize("side", some([0, 1], keep=[0]))
def test_pruned_cycles_are_no_difference(pair: tuple[Path, Path], side: int) -> None:
    origin, copy = pair
    for file in files(pair[side])[:2]:
        file.unlink()
    with quire.open(pair[side]) as queue:
        queue.refresh()
        queue.appender().write_bytes(b"new") if side == 0 else None
    with quire.open(origin) as queue:
        queue.appender().write_bytes(b"newer")
    replicate(origin, copy)
    assert messages(copy)[-1] == messages(origin)[-1]
    assert not (copy / "aside").exists()


def test_a_source_that_was_restored_from_an_old_copy_is_refused(
    pair: tuple[Path, Path],
) -> None:
    origin, copy = pair
    shorten(origin, 2, 3)
    for file in files(origin)[3:]:
        file.unlink()
    with quire.open(origin) as queue:
        queue.refresh()
    before = messages(copy)
    with pytest.raises(DivergedError) as caught:
        replicate(origin, copy)
    assert caught.value.index == before[2 * EACH + 3][0]
    assert messages(copy) == before


def test_what_is_kept_is_believed_only_of_the_same_file(pair: tuple[Path, Path]) -> None:
    origin, copy = pair
    replicate(origin, copy)
    assert (copy / NAME).exists()
    assert (origin / NAME).exists()
    flip(files(copy)[1], b"day 1 message 3")
    with pytest.raises(DivergedError):
        replicate(origin, copy)


DAMAGED = {
    "nothing": b"",
    "zeros": bytes(1000),
    "no whole entry": b"QDIGEST1" + bytes(70),
    "a wrong sum": b"QDIGEST1" + bytes(72) + bytes(32),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_what_is_kept_and_damaged_is_computed_again(
    pair: tuple[Path, Path], content: bytes
) -> None:
    _, copy = pair
    with quire.open(copy, read_only=True) as queue:
        right = CycleDigests(queue).of_range(0, 1 << 30)
        (copy / NAME).write_bytes(content)
        assert CycleDigests(queue).of_range(0, 1 << 30) == right
        kept = (copy / NAME).read_bytes()
        (copy / NAME).unlink()
        (copy / NAME).symlink_to("/etc/passwd")
        assert CycleDigests(queue).of_range(0, 1 << 30) == right
    assert len(kept) == 8 + (DAYS - 1) * 72 + 32
