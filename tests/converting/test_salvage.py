"""What can be read of a damaged queue is brought into a new one, and the rest is named."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from damages import break_message, empty, fill, patch, positions, spoil
from journal_damages import zero_end
from parameters import some
from queues import START_MS, snapshot
from reference import read_queue

DAYS, PER_DAY = 3, 300
BROKEN = 101  # the next index entry is that of 104


@pytest.fixture
def damaged(path: Path) -> Path:
    files = fill(path, DAYS, PER_DAY)
    break_message(files[1], BROKEN)
    return path


def index_of(day: int, sequence: int) -> int:
    return (19737 + day << 32) + sequence


def whole_of(tmp_path: Path) -> dict[int, bytes]:
    fill(tmp_path / "whole", DAYS, PER_DAY)
    return dict(read_queue(tmp_path / "whole"))


def test_every_message_that_the_index_reaches_is_brought(damaged: Path, tmp_path: Path) -> None:
    before, whole = snapshot(damaged), whole_of(tmp_path)
    dest = tmp_path / "saved"
    done = quire.salvage(damaged, dest)
    assert snapshot(damaged) == before
    (lost,) = done.lost
    assert (lost.first, lost.past) == (index_of(1, BROKEN), index_of(1, 104))
    assert done.messages == DAYS * PER_DAY - 3
    saved, places = dict(read_queue(dest)), quire.converting.IndexMap(dest)
    brought = [index for index in whole if not lost.first <= index < (lost.past or 0)]
    assert [saved[places[index]] for index in brought] == [whole[index] for index in brought]
    kept = [index for index in brought if index < lost.first or index >= index_of(2, 0)]
    assert [places[index] for index in kept] == kept
    assert quire.verify(dest).findings == ()


def test_an_unreadable_file_loses_its_cycle_alone(path: Path, tmp_path: Path) -> None:
    files = fill(path, DAYS, 4)
    spoil(files[1])
    done = quire.salvage(path, tmp_path / "saved")
    assert (done.messages, [it.past for it in done.lost]) == (8, [index_of(2, 0)])
    assert [it for it, _ in read_queue(tmp_path / "saved")][4:] == [
        index_of(2, number) for number in range(4)
    ]


def test_the_verb_names_what_is_lost(damaged: Path, tmp_path: Path, cli: Cli) -> None:
    ran = cli("salvage", damaged, tmp_path / "saved")
    assert (ran.code, ran.out) == (1, "messages=897 ranges_lost=1\n")
    assert f"messages from {index_of(1, BROKEN):#x} to before {index_of(1, 104):#x}" in ran.err


def test_reading_skips_damage_where_that_is_asked_for(damaged: Path, cli: Cli) -> None:
    ran = cli("read", damaged, "--format", "jsonl")
    assert (ran.code, len(ran.lines), "corrupt file" in ran.err) == (1, PER_DAY + BROKEN, True)
    ran = cli("read", damaged, "--format", "jsonl", "--on-damage", "skip")
    assert (ran.code, len(ran.lines)) == (1, DAYS * PER_DAY - 3)
    assert f"messages from {index_of(1, BROKEN):#x} to before" in ran.err


def test_the_last_messages_do_not_depend_on_earlier_ones(damaged: Path, cli: Cli) -> None:
    for count in (0, 5, PER_DAY):
        ran = cli.ok("read", damaged, "--last", count, "--format", "jsonl")
        assert len(ran.lines) == count


def test_a_conversion_skips_damage_where_that_is_asked_for(damaged: Path, tmp_path: Path) -> None:
    with pytest.raises(quire.errors.CorruptError):
        quire.convert(damaged, tmp_path / "stopped", into="vanilla")
    done = quire.convert(damaged, tmp_path / "moved", into="vanilla", on_damage="skip")
    assert (done.messages, len(done.lost)) == (DAYS * PER_DAY - 3, 1)
    again = quire.convert(damaged, tmp_path / "moved", into="vanilla", on_damage="skip")
    assert (again.written, again.lost) == (0, done.lost)


def break_by_length(file: Path, place: int) -> None:
    patch(file, place, struct.pack("<I", 0x3FFF_FFF0))


def break_by_zeros(file: Path, place: int) -> None:
    patch(file, place, bytes(4))


@pytest.mark.parametrize("damage", some([break_by_length, break_by_zeros], keep=[0]))
@pytest.mark.parametrize("day", [1, DAYS - 1], ids=["older", "newest"])
@pytest.mark.parametrize(
    "broken",
    some(
        [
            *([0], [3], [4], [9, 14], [9, 12], [9, 14, 18, 22], [0, 5, 9], [150, 154, 295]),
            [290, 294, 298],
        ],
        keep=[3, 8],
    ),
    ids=str,
)
def test_no_more_is_lost_than_the_index_of_the_file_itself_makes_unreachable(
    path: Path, tmp_path: Path, broken: list[int], day: int, damage: Callable[[Path, int], None]
) -> None:
    files = fill(path, DAYS, PER_DAY)
    places = positions(files[day])
    for number in broken:
        damage(files[day], places[number])
    left, is_reached = set[int](), False
    for number in range(PER_DAY):
        # TEST4 indexes each fourth message.
        is_reached = number not in broken and (is_reached or number % 4 == 0)
        if is_reached:
            left.add(index_of(day, number))
    whole = whole_of(tmp_path)
    expected = {index for index in whole if index >> 32 != 19737 + day} | left
    done = quire.salvage(path, tmp_path / "saved")
    saved, moved = (
        dict(read_queue(tmp_path / "saved")),
        quire.converting.IndexMap(tmp_path / "saved"),
    )
    assert done.messages == len(expected)
    assert {index: saved[moved[index]] for index in expected} == {
        index: whole[index] for index in expected
    }
    end = index_of(DAYS, 0)
    lost = {i for i in whole for it in done.lost if it.first <= i < (it.past or end)}
    assert lost == set(whole) - expected


def test_a_read_does_not_end_well_before_messages_after_a_lost_one(path: Path, cli: Cli) -> None:
    file = fill(path, 1, 60)[0]
    break_by_zeros(file, positions(file)[9])
    ran = cli("read", path, "--format", "jsonl")
    assert (ran.code, len(ran.lines)) == (1, 9)
    assert "messages are missing in the middle of the file" in ran.err
    ran = cli("read", path, "--format", "jsonl", "--on-damage", "skip")
    assert (ran.code, len(ran.lines)) == (1, 57)
    assert f"messages from {index_of(0, 9):#x} to before {index_of(0, 12):#x}" in ran.err


def test_the_spacing_of_the_index_is_that_of_the_damaged_file(path: Path, tmp_path: Path) -> None:
    """TEST4 indexes each fourth message; these files each second one."""
    with (
        quire.open(
            path,
            roll_cycle="TEST4_DAILY",
            layout=quire.LayoutOptions(index_spacing=2),
            clock=quire.ManualClock(START_MS),
        ) as queue,
        queue.appender() as appender,
    ):
        for number in range(60):
            appender.write_map({"n": number})
    (path / "metadata.cq4t").unlink()
    (file,) = path.glob("*.cq4")
    places = positions(file)
    for number in (9, 28):
        break_by_length(file, places[number])
    done = quire.salvage(path, tmp_path / "saved")
    assert [(it.first, it.past) for it in done.lost] == [
        (index_of(0, 9), index_of(0, 10)),
        (index_of(0, 28), index_of(0, 30)),
    ]


def test_split_skips_damage_where_that_is_asked_for(
    damaged: Path, tmp_path: Path, cli: Cli
) -> None:
    assert cli("split", damaged, tmp_path / "stopped", "--by", "cycle").code == 1
    ran = cli("split", damaged, tmp_path / "parts", "--by", "cycle", "--on-damage", "skip")
    assert ran.code == 1
    assert f"messages from {index_of(1, BROKEN):#x} to before {index_of(1, 104):#x}" in ran.err
    counts = [len([*read_queue(part)]) for part in sorted((tmp_path / "parts").iterdir())]
    assert counts == [PER_DAY, PER_DAY - 3, PER_DAY]


def test_a_replay_skips_damage_where_that_is_asked_for(
    damaged: Path, tmp_path: Path, cli: Cli
) -> None:
    said = f"messages from {index_of(1, BROKEN):#x} to before {index_of(1, 104):#x}"
    ran = cli("replay", damaged, "--format", "jsonl", "--on-damage", "skip")
    assert (ran.code, len(ran.lines), ran.err.count(said)) == (1, DAYS * PER_DAY - 3, 1)
    paced = ("--time-field", "n", "--speed", "1000000x")
    ran = cli("replay", damaged, "--format", "jsonl", "--on-damage", "skip", *paced)
    assert (ran.code, len(ran.lines), ran.err.count(said)) == (1, DAYS * PER_DAY - 3, 1)
    out = tmp_path / "out"
    for _ in range(2):  # the second finds all of it there
        ran = cli("replay", damaged, "--to-queue", out, "--on-damage", "skip")
        assert (ran.code, ran.err.count(said)) == (1, 1)
        assert len([*read_queue(out)]) == DAYS * PER_DAY - 3
    assert cli("replay", damaged, "--format", "jsonl").code == 1


def test_a_replay_skips_a_file_that_cannot_be_read_and_a_lost_end(
    path: Path, tmp_path: Path, cli: Cli
) -> None:
    files = fill(path, DAYS, 10)
    spoil(files[0])
    zero_end(files[-1])
    ran = cli("replay", path, "--to-queue", tmp_path / "out", "--on-damage", "skip")
    assert (ran.code, ran.err.count("cannot be read")) == (1, 2)
    assert len([*read_queue(tmp_path / "out")]) == 10 + 7


def test_reading_backward_skips_damage_where_that_is_asked_for(damaged: Path, cli: Cli) -> None:
    said = f"messages from {index_of(1, BROKEN):#x} to before {index_of(1, 104):#x}"
    reverse = ("--reverse", "--no-index", "--format", "jsonl")
    ran = cli("read", damaged, "--on-damage", "skip", *reverse)
    assert (ran.code, ran.err.count(said), ran.err.count("cannot be read")) == (1, 1, 1)
    forward = cli("read", damaged, "--on-damage", "skip", "--no-index", "--format", "jsonl")
    assert ran.lines == forward.lines[::-1]
    assert cli("read", damaged, *reverse).code == 1


@pytest.mark.parametrize("day", range(DAYS))
@pytest.mark.parametrize("verb", ["read", "reverse", "replay", "split", "salvage"])
def test_an_emptied_file_is_skipped_alone(
    path: Path, tmp_path: Path, cli: Cli, verb: str, day: int
) -> None:
    files = fill(path, DAYS, 10)
    with quire.open(path) as queue, queue.tailer("reader") as tailer:
        tailer.move_to_index(index_of(day, 5))
    empty(files[day])
    out = tmp_path / "out"
    options: dict[str, list[str | Path]] = {
        "read": ["--format", "jsonl", "--on-damage", "skip"],
        "reverse": ["--format", "jsonl", "--on-damage", "skip", "--reverse"],
        "replay": ["--format", "jsonl", "--on-damage", "skip"],
        "split": [out, "--by", "cycle", "--on-damage", "skip"],
        "salvage": [out],
    }
    ran = cli("read" if verb == "reverse" else verb, path, *options[verb])
    assert (ran.code, ran.err.count("cannot be read")) == (1, 1)
    queues = [out] if verb == "salvage" else [*out.iterdir()] if verb == "split" else []
    found = sum(len([*read_queue(it)]) for it in queues) if queues else len(ran.lines)
    assert found == (DAYS - 1) * 10


def test_verify_names_what_is_lost_and_where_reading_goes_on(damaged: Path) -> None:
    (found,) = [it for it in quire.verify(damaged).findings if it.kind == "gap"]
    assert found.expected.startswith(
        f"messages from {index_of(1, BROKEN):#x} to before {index_of(1, 104):#x},"
        " at which reading goes on, at 0x"
    )


def test_verify_names_the_first_of_a_lost_end(path: Path) -> None:
    zero_end(fill(path, 1, 10)[0])
    (found,) = [it for it in quire.verify(path).findings if it.kind == "lost-end"]
    assert found.expected.startswith(f"messages from {index_of(0, 7):#x} on: ")
