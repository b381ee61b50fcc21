"""Replays: the same bytes in the same places, at a pace, and again after a kill."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from cli_runs import COMMAND, ENVIRONMENT, Cli, run
from golden_sets import QUEUES, name_of
from java_peer import JavaPeer
from queues import DAY_MS, START_MS, roll_files, snapshot
from quire.ranges.event_time import TimeField

DAY_START = datetime(2024, 1, 15, tzinfo=UTC)

Messages = list[tuple[int, bytes]]


def messages(path: Path) -> Messages:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [(excerpt.index, excerpt.data) for excerpt in tailer]


def made(path: Path, days: list[list[bytes]], roll_cycle: str = "TEST4_DAILY") -> Messages:
    """Make a queue with the messages of each day."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle=roll_cycle, clock=clock) as queue,
        queue.appender() as appender,
    ):
        for payloads in days:
            appender.write_many(payloads)
            clock.advance(DAY_MS)
    return messages(path)


class Timer:
    """Time that passes while somebody sleeps, or works; each sleep is *late_s* too long."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.time_s = 1000.0
        self.late_s = late_s

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.time_s += seconds + self.late_s


@pytest.fixture
def hours(path: Path) -> Messages:
    """Messages of three days, eight hours apart; each day has a metadata document, too."""
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue:
        appender = queue.appender()
        for number in range(9):
            clock.now_ms = START_MS - 10 * 3_600_000 + number * 8 * 3_600_000
            appender.write_map({"n": number, "time": clock.now_ms})
            if number % 3 == 1:
                with appender.writing_document(metadata=True) as document:
                    document.write("note", number)
    return messages(path)


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_what_java_wrote_is_replayed_byte_for_byte_to_the_same_indexes(
    golden: Path, tmp_path: Path
) -> None:
    before = snapshot(golden)

    done = quire.replay(golden, tmp_path / "out")

    assert messages(tmp_path / "out") == messages(golden)
    assert done.written == done.messages == len(messages(golden))
    assert snapshot(golden) == before


@pytest.mark.java
def test_java_reads_a_replay_as_it_reads_the_source(tmp_path: Path) -> None:
    golden = next(path for path in QUEUES if path.name == "f_rc_five_minutely")
    quire.replay(golden, tmp_path / "out")

    lines = JavaPeer().run("list", dir=tmp_path / "out")

    listed = [(int(index, 16), bytes.fromhex(data)) for index, _, data in map(str.split, lines)]
    assert listed == messages(golden)
    assert len({index >> 32 for index, _ in listed}) > 1


@pytest.mark.check
def test_two_replays_make_the_same_files_whatever_the_pace(hours: Messages, path: Path) -> None:
    fast, slow, timer = path.with_name("fast"), path.with_name("slow"), Timer()

    quire.replay(path, fast)
    quire.replay(path, slow, speed=2.0, time_field="time", now=timer.now, sleep=timer.sleep)

    assert messages(fast) == hours
    same = {name: state[0] for name, state in roll_files(fast).items()}
    assert {name: state[0] for name, state in roll_files(slow).items()} == same
    assert len(same) == 3


days = st.lists(st.lists(st.binary(min_size=1, max_size=300), max_size=9), min_size=1, max_size=5)


@pytest.mark.check
@settings(max_examples=40)
@given(days, st.data())
def test_any_stretch_is_replayed_and_a_beginning_that_is_there_stays(
    payloads: list[list[bytes]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as directory:
        source, out = Path(directory, "source"), Path(directory, "out")
        everything = made(source, payloads)
        if not everything:
            return
        start, there, past = sorted(
            data.draw(st.integers(0, len(everything) - 1), label=name) for name in ("a", "b", "c")
        )
        points = [index for index, _ in everything]

        first = quire.replay(source, out, start=points[start], end=points[there])
        done = quire.replay(source, out, start=points[start], end=points[past])

        assert first.written == there - start
        assert (done.messages, done.written) == (past - start, past - there)
        assert messages(out) == renumbered(everything[start:past])


def renumbered(stretch: Messages) -> Messages:
    """What a stretch becomes: its first cycle is counted from 0, whole ones stay as they are."""
    shift = stretch[0][0] & 0xFFFF_FFFF if stretch else 0
    first_cycle = stretch[0][0] >> 32 if stretch else 0
    return [(it - shift if it >> 32 == first_cycle else it, data) for it, data in stretch]


def test_a_replay_that_was_killed_goes_on_and_writes_nothing_twice(
    hours: Messages, path: Path
) -> None:
    out = path.with_name("out")
    arguments = ["replay", str(path), "--to-queue", str(out), "--time-field", "time"]
    with quire.open(out, roll_cycle="FAST_DAILY") as queue, queue.tailer() as tailer:
        for wanted in (1, 2, 4):
            # The first message comes at once, and the next one hours later.
            speed = "1x" if wanted == 1 else "100000x"
            with subprocess.Popen([*COMMAND, *arguments, "--speed", speed]) as process:
                while queue.entry_count < wanted:
                    tailer.wait(300)
                    tailer.read()
                process.send_signal(signal.SIGKILL)
                process.wait(300)
            found = messages(out)
            assert found == hours[: len(found)]
            assert len(found) >= wanted

    ran = run(*arguments)

    assert ran.code == 0, ran.err  # which may tell of a lock whose holder died
    assert messages(out) == hours
    assert ran.out == f"written={9 - len(found)} there={len(found)} last={hours[-1][0]:#x}\n"


@pytest.mark.slow
def test_a_fast_replay_that_was_killed_goes_on_too(path: Path) -> None:
    """It is killed while it writes many messages at once."""
    days = [[b"%d %d" % (day, number) for number in range(120_000)] for day in range(3)]
    everything = made(path, days, roll_cycle="FAST_DAILY")
    out = path.with_name("out")
    arguments = ["replay", str(path), "--to-queue", str(out)]
    there = 0
    with quire.open(out, roll_cycle="FAST_DAILY") as queue:
        for _ in range(4):
            with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL) as process:
                while queue.entry_count == there and process.poll() is None:
                    pass
                process.send_signal(signal.SIGKILL)
                process.wait(300)
            found = messages(out)
            assert found == everything[: len(found)]
            there = len(found)

    ran = run(*arguments)

    assert ran.code == 0, ran.err  # which may tell of a lock whose holder died
    assert messages(out) == everything


def test_a_queue_that_holds_something_else_is_refused_and_stays_as_it_is(
    hours: Messages, path: Path
) -> None:
    out, points = path.with_name("out"), [index for index, _ in hours]
    quire.replay(path, out, start=points[1])
    before = messages(out)

    for start, end, what in [
        (None, None, "another message"),
        (points[4], None, "another message"),
        (points[1], points[3], "more than the replay"),
        (points[1], points[1], "more than the replay"),
    ]:
        with pytest.raises(quire.errors.ReplayError, match=f"but {what}.*: index=0x.* path="):
            quire.replay(path, out, start=start, end=end)

    assert messages(out) == before


def test_the_same_messages_in_other_cycles_are_something_else(hours: Messages, path: Path) -> None:
    out = path.with_name("out")
    quire.replay(path, out, end=hours[3][0])
    with quire.open(out, clock=quire.ManualClock(START_MS)) as queue, queue.appender() as appender:
        appender.write_bytes(hours[3][1])

    with pytest.raises(
        quire.errors.ReplayError, match=rf"another index than {hours[3][0]:#x}: index="
    ):
        quire.replay(path, out)


def test_a_writer_beside_the_replay_is_noticed(hours: Messages, path: Path) -> None:
    out, points, timer = path.with_name("out"), [index for index, _ in hours], Timer()

    def write_something(seconds: float) -> None:
        timer.sleep(seconds)
        clock = quire.ManualClock(START_MS)
        with quire.open(out, clock=clock) as queue, queue.appender() as appender:
            appender.write_text("mine")

    with pytest.raises(quire.errors.ReplayError, match="another process writes"):
        quire.replay(path, out, speed=1, time_field="time", now=timer.now, sleep=write_something)
    assert points[0] == messages(out)[0][0]


def test_each_message_waits_until_it_is_due(hours: Messages, path: Path) -> None:
    timer = Timer()

    replay = quire.replayed(path, speed=4, now=timer.now, sleep=timer.sleep, time_field="time")

    seen = [(timer.time_s - 1000, excerpt.index) for excerpt in replay]

    assert seen == [(number * 2 * 3600, index) for number, (index, _) in enumerate(hours)]


def test_a_replay_that_falls_short_of_its_pace_is_reported(hours: Messages, path: Path) -> None:
    timer = Timer(late_s=0.25)

    done = quire.replay(
        path,
        path.with_name("out"),
        speed=1,
        time_field="time",
        now=timer.now,
        sleep=timer.sleep,
    )

    assert (done.behind_s, done.most_behind_s) == (0.25, 0.25)
    assert timer.time_s == 1000 + 64 * 3600 + 0.25
    assert len(hours) == done.written


def test_the_pace_does_not_wait_for_late_messages_nor_for_those_without_a_time(
    path: Path,
) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for time_s in (100, 110, 105, None, 120):
            time = "?" if time_s is None else START_MS + time_s * 1000
            appender.write_map({"time": time})
    timer = Timer()

    replay = quire.replayed(path, speed=1, now=timer.now, sleep=timer.sleep, time_field="time")

    seen = [timer.time_s - 1000 for _ in replay]
    assert seen == [0, 10, 10, 10, 20]


def test_a_message_of_a_far_time_is_waited_for_in_parts(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for time in ("2024-01-01T00:00:00Z", "9999-01-01T00:00:00Z"):
            appender.write_map({"time": time})
    waits: list[float] = []

    def interrupted(seconds: float) -> None:
        waits.append(seconds)
        raise KeyboardInterrupt

    replay = quire.replayed(path, speed=1, sleep=interrupted, time_field="time")

    next(replay)
    with pytest.raises(KeyboardInterrupt):
        next(replay)
    assert waits == [24 * 3600]


def test_the_pace_of_histories_begins_anew_with_their_clock(path: Path) -> None:
    times = [5_000, 6_000, 60, 61]  # the machine was started again before the third
    with quire.open(path) as queue, queue.appender() as appender:
        for time_s in times:
            appender.write_bytes(with_history(time_s * 10**9))
    timer = Timer()

    replay = quire.replayed(path, speed=10, now=timer.now, sleep=timer.sleep)

    assert [round(timer.time_s - 1000, 3) for _ in replay] == [0, 100, 100, 100.1]


def with_history(time_ns: int) -> bytes:
    """A call behind the history that Java writes, with the time of writing alone."""
    packed = bytes([0, 1]) + time_ns.to_bytes(8, "little")
    head = b"\xba\x80\x00\x81" + (len(packed) + 1).to_bytes(2, "little") + b"\x86"
    return head + packed + b"\xb9\x03say\xe2hi"


@pytest.mark.parametrize(
    ("start", "end", "numbers"),
    [
        (None, None, range(9)),
        (DAY_START + timedelta(days=1), None, range(3, 9)),
        (None, datetime(2024, 1, 16), range(3)),  # noqa: DTZ001 - means UTC
        (DAY_START + timedelta(days=1), DAY_START + timedelta(days=2), range(3, 6)),
        (DAY_START - timedelta(days=9), DAY_START + timedelta(days=99), range(9)),
        (DAY_START + timedelta(days=99), None, ()),
        (DAY_START, DAY_START, ()),
    ],
)
def test_a_time_is_the_start_of_a_cycle(
    hours: Messages,
    path: Path,
    start: datetime | None,
    end: datetime | None,
    numbers: range,
) -> None:
    found = [excerpt.index for excerpt in quire.replayed(path, start=start, end=end)]

    assert found == [hours[number][0] for number in numbers]


def test_a_time_in_a_field_begins_and_ends_a_stretch(hours: Messages, path: Path) -> None:
    times = [DAY_START + timedelta(minutes=30, hours=8 * number) for number in range(9)]

    for start, end, numbers in [
        (times[2], times[5], range(2, 5)),
        (times[2] + timedelta(microseconds=1), None, range(3, 9)),
        (None, times[0], range(0)),
        (None, times[8], range(8)),
        (times[8] + timedelta(1), None, range(0)),
    ]:
        replay = quire.replayed(path, start=start, end=end, time_field="time")
        assert [excerpt.index for excerpt in replay] == [hours[number][0] for number in numbers]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--from", "0x4d1900000007"], "no message has this index: start=0x4d1900000007"),
        (["--from", "2024-01-15T10:30"], "cycle_start=2024-01-15T00:00:00"),
        (["--from", "0x4d1900000001", "--to", "0x4d1900000000"], "the end lies before the start"),
        (["--speed", "2x"], "the first message has no history"),
        (["--speed", "2x", "--time-field", "tmie"], "no time in the field 'tmie'"),
        (["--speed", "0"], "'0' is not a speed"),
        (["--from", "yesterday"], "'yesterday' is neither an index"),
        (["--to-queue", "x", "--format", "text"], "--to-queue prints no messages"),
        (["--to-queue", "x", "--columns", "n"], "--to-queue prints no messages"),
        (["--columns", "n", "--format", "hex"], "--columns and --format hex"),
        (["--columns", "m"], "no such field: field=m"),
        (["--format", "csv", "--schema", "nowhere"], "no schema found: nowhere"),
    ],
)
@pytest.mark.usefixtures("hours")
def test_what_cannot_be_replayed_is_reported_in_one_line(
    cli: Cli, path: Path, arguments: list[str], problem: str
) -> None:
    ran = cli("replay", path, *arguments)

    assert (ran.code, ran.out) == (1 if "no message has" in problem else 2, "")
    assert problem in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("style", ["yaml", "json", "jsonl", "text", "csv", "arrow", "hex", "raw"])
def test_without_a_queue_messages_are_shown_as_read_shows_them(
    cli: Cli, path: Path, hours: Messages, style: str
) -> None:
    start, end = hours[2][0], hours[5][0]

    shown = cli.ok("replay", path, "--from", f"{start:#x}", "--to", end, "--format", style)

    read = cli.ok("read", path, "--from", start, "--to", end, "--format", style)
    assert shown.raw == read.raw
    assert shown.raw


@pytest.mark.usefixtures("hours")
def test_rows_with_a_pace_are_those_without(cli: Cli, path: Path) -> None:
    at_pace = ("--speed", "1000000000x", "--time-field", "time")
    for more in (["--format", "csv"], ["--columns", "n", "--format", "jsonl"], ["--no-index"]):
        fast = cli.ok("replay", path, *more)
        paced = cli("replay", path, *at_pace, *more)
        assert (paced.code, paced.raw) == (0, fast.raw)
        assert paced.err.startswith("quire: behind=")
    paced = cli("replay", path, *at_pace, "--format", "arrow", "--columns", "time,n")
    with pa.ipc.open_stream(paced.raw) as stream:
        batches = [*stream]
    assert [batch.num_rows for batch in batches] == [1] * 9
    assert [batch.to_pydict()["n"] for batch in batches] == [[number] for number in range(9)]
    assert batches[0].schema.names == ["index", "time", "n"]


@pytest.mark.parametrize("style", ["yaml", "csv", "arrow"])
@pytest.mark.usefixtures("hours")
def test_each_row_is_handed_on_when_it_is_due(path: Path, style: str) -> None:
    """The second message is due after eight hours."""
    command = [*COMMAND, "replay", str(path), "--speed", "1x", "--time-field", "time"]
    with subprocess.Popen(
        [*command, "--format", style], stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        if style == "arrow":
            source: Any = process.stdout
            batch = pa.ipc.open_stream(source).read_next_batch()
            assert batch.to_pydict()["n"] == [0]
        else:
            lines = [process.stdout.readline() for _ in range(2)]
            assert lines[1] == b"n: 0\n" if style == "yaml" else lines[0] == b"index,n,time\n"
        process.kill()


@pytest.mark.parametrize("schema", ['{"n": "int32", "time": "int64"}', None])
def test_a_schema_types_the_rows(cli: Cli, path: Path, hours: Messages, schema: str | None) -> None:
    more = list[str]()
    if schema is not None:
        path.with_name("types.json").write_text(schema)
        more = ["--schema", str(path.with_name("types.json"))]
    shown = cli.ok("replay", path, "--format", "arrow", *more)
    table = pa.ipc.open_stream(shown.raw).read_all()
    assert table["index"].to_pylist() == [index for index, _ in hours]
    assert table["n"].to_pylist() == [*range(9)]
    assert table["n"].type == (pa.int64() if schema is None else pa.int32())


def test_messages_without_common_fields_have_no_rows(cli: Cli, path: Path) -> None:
    made(path, [[b"\xe5hello", b"\xff\xfe"]])
    for more in ([], ["--speed", "1x", "--time-field", "time"]):
        ran = cli("replay", path, "--format", "csv", *more)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2 if more else 1, "", 1)
    assert "columns" in cli("replay", path, "--format", "arrow").err


def test_points_may_be_milliseconds(cli: Cli, path: Path, hours: Messages) -> None:
    ran = cli.ok("replay", path, "--from", f"{START_MS - START_MS % DAY_MS + DAY_MS}ms")
    assert ran.out.count("time: ") == 6
    assert f"{hours[3][0]:#x}:" in ran.out


def test_an_interrupt_tells_how_much_is_written(path: Path, hours: Messages) -> None:
    out = path.with_name("out")
    command = [
        *COMMAND,
        "replay",
        str(path),
        "--to-queue",
        str(out),
        "--speed",
        "1x",
        "--time-field",
        "time",
    ]
    with (
        quire.open(out, roll_cycle="FAST_DAILY") as queue,
        queue.tailer() as tailer,
        subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT) as process,
    ):
        tailer.wait(300)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)

    assert process.returncode == 130
    # The signal may come between the message and the count of it.
    assert re.fullmatch(
        rf"quire: interrupted: written=[01]( last={hours[0][0]:#x})?\n", err.decode()
    )
    assert messages(out) == hours[:1]


def test_another_roll_cycle_takes_each_message_where_its_cycle_began(
    path: Path, hours: Messages
) -> None:
    out = path.with_name("out")
    quire.replay(path, out, roll_cycle="WEEKLY")
    done = quire.replay(path, out, roll_cycle="WEEKLY")

    with quire.open(out, read_only=True) as queue:
        assert queue.roll_cycle.name == "WEEKLY"
        assert len(queue.cycles) == 1
    assert [data for _, data in messages(out)] == [data for _, data in hours]
    assert done.written == 0


def test_an_empty_queue_is_replayed_to_an_empty_one(path: Path) -> None:
    with quire.open(path):
        pass

    done = quire.replay(path, path.with_name("out"))

    assert (done.messages, done.last) == (0, None)
    assert messages(path.with_name("out")) == []


@pytest.mark.parametrize(
    ("name", "value", "seconds"),
    [
        ("t", 1_705_314_600, 1_705_314_600),
        ("t", 1_705_314_600_000, 1_705_314_600),
        ("t", 1_705_314_600_000_000, 1_705_314_600),
        ("t", 1_705_314_600_000_000_000, 1_705_314_600),
        ("t", 1_705_314_600.5, 1_705_314_600.5),
        ("t", "2024-01-15T10:30:00Z", 1_705_314_600),
        ("t", "2024-01-15T11:30:00+01:00[Europe/Paris]", 1_705_314_600),
        ("t", "1705314600000", 1_705_314_600),
        ("t", True, None),
        ("t", "soon", None),
        ("call.t", 5, None),
        ("t", None, None),
    ],
)
def test_a_time_may_be_written_in_many_ways(
    name: str, value: object, seconds: float | None
) -> None:
    expected = None if seconds is None else round(seconds * 10**9)
    top = quire.types.parse_json(f'{{"t": {json.dumps(value)}, "u": 1}}')
    call = quire.types.parse_json(f'{{"call": {{"@Trade": {{"t": {json.dumps(value)}}}}}}}')

    assert TimeField(name).of(top) == expected
    assert TimeField(name).of(call) == (5 * 10**9 if "." in name else expected)


@pytest.mark.parametrize("speed", [None, 1e9])
def test_the_blocks_of_the_new_queue_hold_the_longest_message(
    path: Path, tmp_path: Path, speed: float | None
) -> None:
    payloads: list[dict[str, Any]] = [
        {"time": START_MS},
        {"time": START_MS, "text": "x" * (17 << 20)},
        {"time": 5},
    ]
    with quire.open(path, block_bytes=128 << 20) as queue, queue.appender() as appender:
        for payload in payloads:
            appender.write_map(payload)

    out = tmp_path / "out"
    assert quire.replay(path, out, speed=speed, time_field="time").written == 3
    assert quire.replay(path, out).written == 0
    assert messages(out) == messages(path)
