"""A roll file that was emptied is an error where something shows that it had messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from damages import age, empty, fill
from journal_damages import cut_message, zero_end
from parameters import some
from queues import DAY_MS, START_MS, poke

DAYS, PER_DAY, READ = 3, 10, 5
CYCLE = START_MS // DAY_MS
INDEX = quire.RollCycle("TEST4_DAILY").to_index
WHAT = "was emptied, or its beginning was lost"


def begin_again(file: Path) -> None:
    """Leave what a process does that dies while it makes a file."""
    empty(file)
    file.write_bytes(b"\0\0\0\x80")


def by_tailer(path: Path, cycle: int) -> None:
    with quire.open(path) as queue, queue.tailer("reader") as tailer:
        assert tailer.move_to_index(INDEX(cycle, READ))


def by_word(key: str) -> Callable[[Path, int], None]:
    return lambda path, cycle: poke(path, key, INDEX(cycle, 0))


def by_times(path: Path, cycle: int) -> None:
    with quire.open(path) as queue:
        assert queue.cycles[0] <= cycle <= queue.cycles[-1]
    assert quire.maintenance.build_time_index(path, time_field="n")


WITNESSES = {
    "tailer": by_tailer,
    "synced": by_word("chronicle.lastIndexMSynced"),
    "replicated": by_word("chronicle.lastIndexReplicated"),
    "acknowledged": by_word("chronicle.lastAcknowledgedIndexReplicated"),
    "times": by_times,
}


@pytest.fixture(params=WITNESSES)
def witness(request: pytest.FixtureRequest) -> Callable[[Path, int], None]:
    return WITNESSES[request.param]


@pytest.mark.parametrize("damage", [empty, begin_again])
@pytest.mark.parametrize("day", [0, 1, DAYS - 1], ids=["oldest", "middle", "newest"])
def test_it_is_an_error_where_something_shows_its_messages(
    path: Path, witness: Callable[[Path, int], None], day: int, damage: Callable[[Path], None]
) -> None:
    files = fill(path, DAYS, PER_DAY)
    witness(path, CYCLE + day)
    damage(files[day])
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        for _ in range(2):
            with pytest.raises(quire.errors.CorruptError, match=WHAT) as raised:
                list(tailer)
            assert raised.value.file == str(files[day])
        with pytest.raises(quire.errors.CorruptError, match=WHAT):
            queue.end_of_cycle(CYCLE + day)
        other = (day + 1) % DAYS
        assert tailer.move_to_index(INDEX(CYCLE + other, 3))
        assert tailer.read_map() == {"n": other * PER_DAY + 3}
        assert queue.entry_count == (DAYS - 1) * PER_DAY


@pytest.mark.parametrize("day", [0, 1, DAYS - 1], ids=["oldest", "middle", "newest"])
def test_reading_backward_does_not_pass_it(path: Path, day: int) -> None:
    files = fill(path, DAYS, PER_DAY)
    by_tailer(path, CYCLE + day)
    empty(files[day])
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        tailer.direction = "backward"
        assert tailer.move_to_index(INDEX(CYCLE + 1, 0)) is (day != 1)
        with pytest.raises(quire.errors.CorruptError, match=WHAT):
            back_from_the_end(tailer)


def back_from_the_end(tailer: quire.JournalTailer) -> None:
    tailer.to_end()
    while tailer.read_map() is not None:
        pass


@pytest.mark.parametrize("day", [1, DAYS - 1], ids=["middle", "newest"])
def test_where_nothing_shows_that_it_had_messages_it_is_passed_over(path: Path, day: int) -> None:
    files = fill(path, DAYS, PER_DAY)
    empty(files[day])
    age(files[day])
    with quire.open(path, read_only=True, timeout_s=0.0) as queue, queue.tailer() as tailer:
        assert len(tailer.read_many(100)) == (DAYS - 1) * PER_DAY


def test_a_position_at_the_start_of_a_cycle_shows_no_message(path: Path) -> None:
    files = fill(path, DAYS, PER_DAY)
    with quire.open(path) as queue, queue.tailer("reader") as tailer:
        assert tailer.move_to_index(INDEX(CYCLE + 2, 0))
    empty(files[-1])
    with quire.open(path, read_only=True, timeout_s=0.0) as queue, queue.tailer() as tailer:
        assert len(tailer.read_many(100)) == (DAYS - 1) * PER_DAY


def test_the_tailer_whose_messages_they_were_is_warned(path: Path) -> None:
    files = fill(path, DAYS, PER_DAY)
    by_tailer(path, CYCLE + 2)
    empty(files[-1])
    with (
        quire.open(path) as queue,
        pytest.raises(
            quire.errors.CorruptError, match=f"{WHAT}.* of the tailer reader .*quire salvage"
        ),
        queue.tailer("reader") as tailer,
    ):
        tailer.read()


def test_an_appender_begins_the_newest_again_and_readers_go_on(path: Path) -> None:
    files = fill(path, DAYS, PER_DAY)
    by_tailer(path, CYCLE + 2)
    empty(files[-1])
    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.write_map({"n": -1})
        with queue.tailer("reader") as tailer, queue.tailer() as all_of_them:
            assert tailer.read_map() == {"n": -1}
            assert len(all_of_them.read_many(100)) == (DAYS - 1) * PER_DAY + 1


@pytest.mark.parametrize("day", [1, DAYS - 1], ids=["middle", "newest"])
def test_an_appender_to_a_later_cycle_puts_it_aside(path: Path, day: int) -> None:
    files = fill(path, DAYS, PER_DAY)
    by_tailer(path, CYCLE + day)
    empty(files[day])
    clock = quire.ManualClock(START_MS + 5 * DAY_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.write_map({"n": -1})
        assert [file.name for file in path.glob("*.discard")] == [
            file.name for file in path.glob(f"{files[day].name}-*.discard")
        ]
        with queue.tailer() as tailer:
            assert len(tailer.read_many(100)) == (DAYS - 1) * PER_DAY + 1


@pytest.mark.parametrize("day", [1, DAYS - 1], ids=["middle", "newest"])
@pytest.mark.parametrize("damage", [cut_message, zero_end])
def test_a_lost_end_is_an_error_of_what_counts_to_it(
    path: Path, damage: Callable[[Path], None], day: int
) -> None:
    files = fill(path, DAYS, PER_DAY)
    damage(files[day])
    with quire.open(path, read_only=True) as queue:
        with pytest.raises(quire.errors.CorruptError, match=files[day].name):
            queue.end_of_cycle(CYCLE + day)
        if day == DAYS - 1:
            with pytest.raises(quire.errors.CorruptError, match=files[day].name):
                assert queue.last_index
    with quire.open(path, clock=quire.ManualClock(START_MS + 5 * DAY_MS)) as queue:
        index = queue.appender().write_map({"n": -1})
        queue.appender().sync()
        assert queue.last_index == index


VERBS = {
    "read": ("read", "Q"),
    "read --reverse": ("read", "Q", "--reverse"),
    "replay": ("replay", "Q"),
    "replay into a queue": ("replay", "Q", "--to-queue", "OUT"),
    "diff": ("diff", "Q", "WHOLE"),
    "publish": ("publish", "Q", "--stdout", "--framing", "length"),
    "convert": ("convert", "Q", "OUT", "--into", "vanilla"),
    "split": ("split", "Q", "OUT", "--by", "cycle"),
    "copy": ("copy", "Q", "OUT"),
    "archive": ("archive", "Q", "OUT"),
    "stat": ("stat", "Q"),
    "verify": ("verify", "Q"),
    "salvage": ("salvage", "Q", "OUT"),
}


@pytest.mark.parametrize("damage", some([empty, cut_message, zero_end], keep=[0]))
@pytest.mark.parametrize("day", [1, DAYS - 1], ids=["middle", "newest"])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_ends_well_past_it(  # noqa: PLR0913, PLR0917 - parameters
    path: Path, tmp_path: Path, verb: str, day: int, damage: Callable[[Path], None], cli: Cli
) -> None:
    files = fill(path, DAYS, PER_DAY)
    if damage is empty:
        by_tailer(path, CYCLE + day)
    fill(tmp_path / "whole", DAYS, PER_DAY)
    damage(files[day])
    places = {"Q": path, "OUT": tmp_path / "out", "WHOLE": tmp_path / "whole"}
    ran = cli(*(places.get(word, word) for word in VERBS[verb]))
    assert ran.code != 0
    assert files[day].name in ran.err + ran.out
