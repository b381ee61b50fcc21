"""Two queues compared: what differs is found, named, counted, and nothing else."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from cli_runs import Cli, run
from golden_sets import MAIN, QUEUES, name_of
from parameters import some
from queues import DAY_MS, START_MS, copy_of
from quire.replaying.comparison import Alignment, Difference


class Say(Protocol):
    def say(self, text: str) -> None: ...


Days = list[list[bytes]]
WAYS: tuple[Alignment, ...] = ("position", "index")


def made(path: Path, days: Days) -> Path:
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=2**16, clock=clock) as queue,
        queue.appender() as appender,
    ):
        for payloads in days:
            appender.write_many(payloads)
            clock.advance(DAY_MS)
    return path


def maps(path: Path, *values: object) -> Path:
    return made(path, [[quire.types.parse_json(json.dumps(value)) for value in values]])


def numbered(*numbers: int) -> list[bytes]:
    return [b"message %d" % number for number in numbers]


def kinds(found: Iterable[Difference]) -> list[tuple[str, bytes, bytes]]:
    return [
        (it.kind, it.left.data if it.left else b"", it.right.data if it.right else b"")
        for it in found
    ]


payloads = st.lists(st.lists(st.sampled_from([b"a", b"b", b"c", b"dd"]), max_size=12), max_size=4)


@settings(max_examples=80)
@given(payloads, payloads, st.sampled_from(WAYS))
def test_what_is_found_makes_one_queue_of_the_other(left: Days, right: Days, by: Alignment) -> None:
    with TemporaryDirectory() as directory:
        paths = [made(Path(directory, name), days) for name, days in (("a", left), ("b", right))]
        mine, other = [everything(path) for path in paths]

        comparison = quire.compare(*paths, by=by)
        found = list(comparison)

    for one in found:
        assert one.left is None or mine.pop(one.left.index) == one.left.data
        assert one.right is None or other.pop(one.right.index) == one.right.data
        assert one.left is None or one.right is None or one.left.data != one.right.data
    # What was not named as different is alike, in order and, by index, at the same place.
    assert [*mine.values()] == [*other.values()]
    assert by == "position" or mine == other
    assert comparison.alike == len(mine)
    assert comparison.differences == len(found)


def everything(path: Path) -> dict[int, bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return {excerpt.index: excerpt.data for excerpt in tailer}


def test_by_index_each_message_is_compared_with_its_namesake(tmp_path: Path) -> None:
    left = made(tmp_path / "a", [numbered(0, 1, 2), numbered(3), [], numbered(4, 5)])
    right = made(tmp_path / "b", [numbered(0, 9), [], numbered(7), numbered(4, 5, 6)])

    assert kinds(quire.compare(left, right, by="index")) == [
        ("changed", b"message 1", b"message 9"),
        ("left", b"message 2", b""),
        ("left", b"message 3", b""),
        ("right", b"", b"message 7"),
        ("right", b"", b"message 6"),
    ]


def test_the_same_messages_in_other_cycles_are_alike_by_position_alone(tmp_path: Path) -> None:
    left = made(tmp_path / "a", [numbered(0, 1), numbered(2)])
    right = made(tmp_path / "b", [numbered(0), numbered(1, 2)])

    assert kinds(quire.compare(left, right)) == []
    assert kinds(quire.compare(left, right, by="index")) == [
        ("left", b"message 1", b""),
        ("changed", b"message 2", b"message 1"),
        ("right", b"", b"message 2"),
    ]


@pytest.mark.parametrize("missing", [0, 1, 128, 500, 999])
def test_a_message_that_is_missing_is_one_difference(tmp_path: Path, missing: int) -> None:
    everything, fewer = [*range(1000)], [it for it in range(1000) if it != missing]
    left = made(tmp_path / "a", [numbered(*everything)])
    right = made(tmp_path / "b", [numbered(*fewer)])

    assert kinds(quire.compare(left, right)) == [("left", b"message %d" % missing, b"")]
    assert kinds(quire.compare(right, left)) == [("right", b"", b"message %d" % missing)]


def test_far_apart_queues_are_compared_place_by_place_and_end_apart(tmp_path: Path) -> None:
    left = made(tmp_path / "a", [numbered(*range(1000))])
    right = made(tmp_path / "b", [numbered(*range(5000, 6100))])

    comparison = quire.compare(left, right)
    found = list(comparison)

    counts = (comparison.alike, comparison.changed, comparison.left, comparison.right)
    assert counts == (0, 1000, 0, 100)
    assert all(
        it.left.index == it.right.index
        for it in found
        if it.left and it.right  # the same place
    )


@pytest.mark.parametrize("by", some(WAYS, keep=[0]))
def test_memory_is_bounded_whatever_the_lengths_are(tmp_path: Path, by: Alignment) -> None:
    large = [b"%07d " % number * 5000 for number in range(1600)]  # 64 MB
    small = numbered(*range(4000))
    paths = made(tmp_path / "a", [small]), made(tmp_path / "b", [large])
    found = quire.compare(*paths, by=by)

    tracemalloc.start()
    try:
        for _ in found:
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (found.changed, found.left, found.right) == (len(large), len(small) - len(large), 0)
    assert peak < 32 * 2**20


@pytest.mark.parametrize("golden", [it for it in QUEUES if it.parent == MAIN], ids=name_of)
def test_what_java_wrote_is_what_a_copy_of_it_holds(golden: Path, tmp_path: Path) -> None:
    comparison = quire.compare(golden, copy_of(golden, tmp_path / "copy"), by="index")
    assert list(comparison) == []

    with quire.open(golden, read_only=True) as queue:
        assert comparison.alike == queue.entry_count


def test_what_is_written_meanwhile_is_not_compared(tmp_path: Path) -> None:
    left, right = (made(tmp_path / name, [numbered(1, 2)]) for name in "ab")
    with quire.open(left) as queue, queue.appender() as appender:
        appender.write_text("before")
        comparison = quire.compare(left, right)
        first = next(comparison)
        appender.write_text("after")

        assert first.kind == "left"
        assert list(comparison) == []


def test_values_are_alike_whatever_their_encoding_and_order(tmp_path: Path) -> None:
    others = [b"\xe4same", b"\xff\xfe no values"]
    left = made(
        tmp_path / "a", [[quire.types.parse_json('{"size": 5, "tags": ["x", "y"]}'), *others]]
    )
    right = made(
        tmp_path / "b",
        [[quire.types.parse_json('{"tags": ["x", "y"]}') + b"\xc4size\xa1\x05", *others]],
    )

    assert [it.kind for it in quire.compare(left, right)] == ["changed"]
    assert kinds(quire.compare(left, right, values=True)) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"b": 1}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": None}, {"a": ""}),
    ],
)
def test_other_values_are_different(
    tmp_path: Path, left: dict[str, object], right: dict[str, object]
) -> None:
    paths = maps(tmp_path / "a", left), maps(tmp_path / "b", right)

    assert [it.kind for it in quire.compare(*paths, values=True)] == ["changed"]


def test_calls_of_one_name_in_a_message_are_all_compared(tmp_path: Path) -> None:
    texts = '{"say": 1, "say": 2}', '{"say": 3, "say": 2}'
    paths = [
        made(tmp_path / name, [[quire.types.parse_json(text)]])
        for name, text in zip("ab", texts, strict=True)
    ]

    assert [it.kind for it in quire.compare(*paths, values=True)] == ["changed"]


@pytest.mark.parametrize(
    ("ignore", "differences"),
    [
        ([], 3),
        (["time"], 1),
        (["order.time"], 2),
        (["time", "size"], 0),
        (["order"], 2),
        (["ime", "siz"], 3),
    ],
)
def test_fields_that_do_not_matter_are_named(
    tmp_path: Path, ignore: list[str], differences: int
) -> None:
    left = maps(
        tmp_path / "a", {"time": 1, "n": 1}, {"order": {"time": 1}, "n": 2}, {"o": {"size": 1}}
    )
    right = maps(
        tmp_path / "b", {"time": 2, "n": 1}, {"order": {"time": 2}, "n": 2}, {"o": {"size": 2}}
    )

    assert len(kinds(quire.compare(left, right, values=True, ignore=ignore))) == differences


def test_the_history_can_be_left_out(tmp_path: Path) -> None:
    left, right = tmp_path / "a", tmp_path / "b"
    for path in (left, right):
        with quire.open(path) as queue, queue.appender() as appender:
            appender.method_writer(Say, record_history=True).say("hello")

    assert [it.kind for it in quire.compare(left, right, values=True)] == ["changed"]
    assert kinds(quire.compare(left, right, ignore=["history"])) == []


def test_a_stretch_of_both_is_compared(tmp_path: Path) -> None:
    left = made(tmp_path / "a", [numbered(0, 1), numbered(2, 3), numbered(4)])
    right = made(tmp_path / "b", [numbered(5), numbered(2, 9), numbered(6)])
    with quire.open(left, read_only=True) as queue:
        start, end = (queue.roll_cycle.to_index(cycle, 0) for cycle in queue.cycles[1:])

    assert kinds(quire.compare(left, right, start=start, end=end)) == [
        ("changed", b"message 3", b"message 9")
    ]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """The second message changed, the fourth is missing."""
    rows = [{"symbol": "EURUSD", "price": 1.0 + number / 8, "size": number} for number in range(5)]
    left = maps(tmp_path / "a", *rows)
    rows[1] = rows[1] | {"price": 9.5}
    return left, maps(tmp_path / "b", *rows[:3], *rows[4:])


def test_differences_are_shown_with_their_indexes(cli: Cli, pair: tuple[Path, Path]) -> None:
    ran = cli("diff", *pair)

    assert (ran.code, ran.err) == (1, "")
    assert ran.lines == [
        "@ 0x4d1900000001 0x4d1900000001",
        " symbol: EURUSD",
        "-price: 1.125",
        "+price: 9.5",
        " size: 1",
        "@ 0x4d1900000003 -",
        "-symbol: EURUSD",
        "-price: 1.375",
        "-size: 3",
        "alike=3 changed=1 left=1 right=0",
    ]


def test_values_that_changed_are_shown_by_their_paths(cli: Cli, tmp_path: Path) -> None:
    left = maps(tmp_path / "a", {"order": {"legs": [{"px": 1}, {"px": 2}], "by": "me"}, "t": 1})
    right = maps(tmp_path / "b", {"t": 2, "order": {"by": "me", "legs": [{"px": 1}, {"px": 3}]}})

    ran = cli("diff", left, right, "--ignore", "t")

    assert ran.code == 1
    assert ran.lines[1:] == [
        "-order.legs[1].px: 2",
        "+order.legs[1].px: 3",
        "alike=0 changed=1 left=0 right=0",
    ]


def test_programs_get_an_object_a_line(cli: Cli, pair: tuple[Path, Path]) -> None:
    changed, missing, counts = map(json.loads, cli("diff", *pair, "--json", "--values").lines)

    assert changed == {
        "kind": "changed",
        "left": {
            "index": "0x4d1900000001",
            "message": {"symbol": "EURUSD", "price": 1.125, "size": 1},
        },
        "right": {
            "index": "0x4d1900000001",
            "message": {"symbol": "EURUSD", "price": 9.5, "size": 1},
        },
        "fields": ["price"],
    }
    assert (missing["kind"], missing["left"]["index"]) == ("left", "0x4d1900000003")
    assert counts == {"alike": 3, "changed": 1, "left": 1, "right": 0}


def test_other_bytes_of_the_same_values_are_shown_as_digits(cli: Cli, tmp_path: Path) -> None:
    wide = b"\xb9\x01a\xa7\x01" + bytes(7)
    narrow = b"\xb9\x01a\xa6\x01" + bytes(3)

    lines = cli("diff", made(tmp_path / "a", [[wide]]), made(tmp_path / "b", [[narrow]])).lines

    assert lines[1] == " the same values in other bytes"
    assert lines[2:4] == [f"-{wide.hex()}", f"+{narrow.hex()}"]


def test_a_limit_ends_what_is_shown_and_not_the_count(cli: Cli, tmp_path: Path) -> None:
    left = made(tmp_path / "a", [numbered(*range(300))])
    right = made(tmp_path / "b", [numbered(*range(1000, 1300))])

    lines = cli("diff", left, right, "--limit", "3").lines

    assert sum(line.startswith("@ ") for line in lines) == 3
    assert lines[-1] == "alike=0 changed=300 left=0 right=0"


def test_exit_codes_are_those_of_diff(pair: tuple[Path, Path], tmp_path: Path) -> None:
    same = run("diff", pair[0], pair[0])
    brief = run("diff", *pair, "-q")
    missing = run("diff", pair[0], tmp_path / "nothing")
    wrong = run("diff", pair[0], pair[1], "--by", "size")
    crossed = run("diff", *pair, "--from", "9", "--to", "3")

    assert (same.code, same.out) == (0, "alike=5 changed=0 left=0 right=0\n")
    assert (brief.code, brief.out, brief.err) == (1, "", "")
    assert [it.code for it in (missing, wrong, crossed)] == [2, 2, 2]
    assert "no such directory" in missing.err
    assert "the end lies before the start" in crossed.err
    assert missing.err.count("\n") == crossed.err.count("\n") == 1


def test_text_cannot_command_the_terminal(cli: Cli, tmp_path: Path) -> None:
    left = maps(tmp_path / "a", {"a\x1b": "\x1b[2J"})
    right = maps(tmp_path / "b", {"a\x1b": "\x9b1m\n"})

    for options in ([], ["--values"], ["--json"]):
        shown = cli("diff", left, right, *options).out
        assert not {"\x1b", "\x9b"} & {*shown}
