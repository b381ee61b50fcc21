"""`quire read`: which messages it shows, in which form, and how it ends."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from cli_runs import COMMAND, ENVIRONMENT, Cli, run
from java_peer import JavaPeer
from paths import GOLDEN
from queues import DAY_MS, START_MS, copy_of, snapshot
from quire.cli.output.message_formats import text_of
from quire.cli.reading.selection import Bounds, Selection
from quire.cli.streams import Output

DAYS = (4, 3, 0, 5)  # messages a day; there is no file of the third


@pytest.fixture
def indexes(clock: quire.ManualClock, appender: quire.JournalAppender) -> list[int]:
    """Of the messages `m0`, `m1`, ... on four days."""
    return written(appender, clock)


def written(appender: quire.JournalAppender, clock: quire.ManualClock) -> list[int]:
    names = (f"m{number}" for number in range(sum(DAYS)))
    found: list[int] = []
    for count in DAYS:
        found += [appender.write_text(next(names)) for _ in range(count)]
        clock.advance(DAY_MS)
    return found


def test_all_messages_are_shown_with_their_indexes(
    cli: Cli, path: Path, indexes: list[int]
) -> None:
    lines = cli.ok("read", path, "--format", "text").lines

    assert lines == [f"{index:#x}: m{number}" for number, index in enumerate(indexes)]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--last", "3"], [9, 10, 11]),
        (["-n", "0"], []),
        (["--last", "99"], range(12)),
        (["--count", "2"], [0, 1]),
        (["--count", "0"], []),
        (["--last", "3", "--count", "2"], [9, 10]),
        (["--reverse"], range(11, -1, -1)),
        (["--reverse", "--count", "2"], [11, 10]),
        (["--reverse", "--last", "2"], [11, 10]),
        (["--reverse", "--last", "3", "--count", "2"], [11, 10]),
        (["--include", "m1"], [1, 10, 11]),
        (["-i", "m1", "-i", "1$"], [1, 11]),
        (["--exclude", "[0-8]"], [9]),
        (["-e", "0", "-e", "m[2-9]"], [1, 11]),
        (["-i", "m1", "-e", "0"], [1, 11]),
        (["-i", "m[1-4]$", "--last", "2"], [3, 4]),
        (["-i", "m1", "--count", "2"], [1, 10]),
        (["-i", "m1", "--reverse", "--count", "2"], [11, 10]),
        (["-i", "no such", "--last", "2"], []),
    ],
)
@pytest.mark.usefixtures("indexes")
def test_what_is_asked_for_is_shown(
    cli: Cli, path: Path, options: list[str], shown: list[int]
) -> None:
    lines = cli.ok("read", path, "--format", "text", "--no-index", *options).lines

    assert lines == [f"m{number}" for number in shown]


def model(count: int, bounds: Bounds, at: list[int]) -> list[int]:
    """What the bounds select, of messages in memory."""
    chosen = list(range(count))
    if bounds.reverse:
        chosen = [n for n in reversed(chosen) if bounds.end is None or at[n] < bounds.end]
        return [n for n in chosen if bounds.start is None or at[n] >= bounds.start]
    chosen = [n for n in chosen if bounds.end is None or at[n] < bounds.end]
    if bounds.start is not None:
        return [n for n in chosen if at[n] >= bounds.start]
    return chosen if bounds.last is None else chosen[len(chosen) - min(len(chosen), bounds.last) :]


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[quire.JournalQueue, list[int]]]:
    clock = quire.ManualClock(1_705_314_600_000)
    path = tmp_path_factory.mktemp("filled")
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        yield queue, written(appender, clock)


@given(data=st.data())
def test_any_bounds_select_what_a_list_would(
    filled: tuple[quire.JournalQueue, list[int]], data: st.DataObject
) -> None:
    queue, indexes = filled
    index = st.none() | st.sampled_from(indexes)
    start = data.draw(index)
    bounds = Bounds(
        start=start,
        end=data.draw(index),
        last=None if start is not None else data.draw(st.none() | st.integers(0, 14)),
        reverse=(reverse := data.draw(st.booleans())),
        follow=False,
        metadata=not reverse and data.draw(st.booleans()),
    )
    if bounds.reverse:
        bounds = bounds._replace(last=None)
    with queue.tailer() as tailer:
        found = [it for it in Selection(queue, tailer, bounds).batches() if it is not None]
    chosen = [(batch, row) for batch, rows in found for row in rows if not batch.is_metadata]
    shown = [text_of(batch, "text", row) for batch, row in chosen]

    assert shown == [f"m{number}" for number in model(len(indexes), bounds, indexes)]


def test_an_index_is_taken_as_it_is_shown(cli: Cli, path: Path, indexes: list[int]) -> None:
    for start in (f"{indexes[5]:#x}", f"{indexes[5]:#x}:", f"{indexes[5]}"):
        ran = cli.ok("read", path, "--format", "text", "--from", start, "--to", indexes[8])
        assert [line.split()[1] for line in ran.lines] == ["m5", "m6", "m7"]


def test_a_slow_reader_ends_although_writers_go_on(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_text("0")
    bounds = Bounds(start=None, end=None, last=None, reverse=False, follow=False, metadata=False)
    shown: list[str] = []
    with queue.tailer() as tailer:
        for found in Selection(queue, tailer, bounds, is_named=True).batches():
            assert found is not None
            batch, rows = found
            shown += [text_of(batch, "text", row) for row in rows]
            appender.write_text("more")
    assert shown == ["0"]


def test_metadata_is_shown_on_demand_alone(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    with appender.writing_document(metadata=True) as document:
        document.write_bytes(b"\xe1m")
    index = appender.write_text("t")

    assert cli.ok("read", path, "--format", "text").lines == [f"{index:#x}: t"]
    lines = cli.ok("read", path, "--format", "text", "--metadata").lines
    assert lines[-2:] == [f"{index:#x}: m # metadata", f"{index:#x}: t"]


def test_hex_and_raw_are_the_bytes(cli: Cli, path: Path, appender: quire.JournalAppender) -> None:
    appender.write_bytes(bytes(range(256)))
    index = appender.write_bytes(b"\n")

    lines = cli.ok("read", path, "--format", "hex").lines
    assert lines == [f"{index - 1:#x}: {bytes(range(256)).hex()}", f"{index:#x}: 0a"]
    assert cli.ok("read", path, "--format", "raw").raw == bytes(range(256)) + b"\n"


def test_yaml_is_the_default_and_documents_where_no_index_parts_them(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    first = appender.write_map({"a": 1, "b": {"c": [True, None]}})
    appender.write_text("two")
    lines = cli.ok("read", path).out
    nested = 'a: 1\nb: {\n  c: [\n    true,\n    !!null ""\n  ]\n}\n'

    assert lines == f"{first:#x}:\n{nested}\n{first + 1:#x}:\ntwo\n\n"
    assert cli.ok("read", path, "--no-index").out == f"---\n{nested}---\ntwo\n"
    assert cli.ok("read", path, "--no-index", "-i", "^  c").out == f"---\n{nested}"


def test_bytes_without_values_are_shown_as_they_read(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_bytes("plain: text\n\tÜ".encode())
    appender.write_bytes(b"\xff\x1b[2J" + b"0123456789abcdef")

    assert cli.ok("read", path, "--no-index").out == (
        "---\nplain: text\n\tÜ\n---\n"
        "00000000  ff 1b 5b 32 4a 30 31 32 33 34 35 36 37 38 39 61  ··[2J0123456789a\n"
        "00000010  62 63 64 65 66                                   bcdef\n"
    )


def test_json_is_an_array_and_jsonl_lines_of_it(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    assert json.loads(cli.ok("read", path, "--format", "json").out) == []
    with appender.writing_document(metadata=True) as document:
        document.write("meta", 1)
    first = appender.write_map({"a": 1, "b": ["x", None]})
    appender.write_text('a \x7f\x9b\x1b\n"b"')
    appender.write_bytes(b"\xff\x00")
    messages = [{"a": 1, "b": ["x", None]}, 'a \x7f\x9b\x1b\n"b"', {"bytes": "ff00"}]
    shown = [{"index": f"{first + n:#x}", "message": it} for n, it in enumerate(messages)]

    array = cli.ok("read", path, "--format", "json")
    lines = cli.ok("read", path, "--format", "jsonl")

    assert json.loads(array.out) == shown
    assert [json.loads(line) for line in lines.lines] == shown
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lines.out)
    alone = cli.ok("read", path, "--format", "json", "--no-index", "--count", "2")
    assert json.loads(alone.out) == messages[:2]
    with_metadata = cli.ok("read", path, "--format", "json", "--metadata").out
    assert {"index": f"{first:#x}", "metadata": True, "message": {"meta": 1}} in json.loads(
        with_metadata
    )


@pytest.mark.parametrize("verb", ["read", "dump"])
def test_names_in_a_message_cannot_command_a_terminal(
    path: Path, appender: quire.JournalAppender, verb: str
) -> None:
    appender.write_bytes(b"\xb6\x05\x1b[2Jx\xe1a")  # a type of this name, in front of a text
    master, slave = pty.openpty()
    with subprocess.Popen([*COMMAND, verb, str(path)], stdout=slave) as process:
        os.close(slave)
        seen = b""
        with suppress(OSError):  # the terminal's other side is closed
            while piece := os.read(master, 4096):
                seen += piece
        assert process.wait(300) == 0
    os.close(master)
    seen = seen.replace(b"\x1b[36m", b"").replace(b"\x1b[0m", b"")  # of indexes
    assert b"[2Jx" in seen
    assert b"\x1b" not in seen


@pytest.mark.java
@pytest.mark.parametrize(
    ("case", "shown_at_least"),
    [("a_text", 26), ("b_scalars", 5), ("c_methods_history", 11), ("j_empty_documents", 3)],
)
def test_yaml_is_what_javas_reader_shows(
    cli: Cli, tmp_path: Path, case: str, shown_at_least: int
) -> None:
    golden = GOLDEN / "java-5.27ea11" / case
    java, *jvm, _main, _verb = JavaPeer().command("none")
    command = [java, *jvm, "net.openhft.chronicle.queue.ChronicleReaderMain", "-d"]
    ran = subprocess.run(
        [*command, str(copy_of(golden, tmp_path / "copy"))],
        capture_output=True,
        text=True,
        check=False,
    )
    expected, heads = re.subn(r"(?m)^(0x[0-9a-f]+:) $", r"\1", ran.stdout)

    shown = cli.ok("read", golden).out

    assert heads >= shown_at_least
    if ran.returncode == 0:
        assert shown == expected
    else:  # it trips over what Java itself wrote: an anchor, a list of short texts
        assert "at net.openhft.chronicle.wire.BinaryWire." in ran.stderr
        assert shown.startswith(expected)


def test_text_cannot_command_the_terminal(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_text("a\x1b[2J\n\r\tb\x7f\x9b\x00ü€😀")
    appender.write_bytes(b"\xff\x1b[2J")

    lines = cli.ok("read", path, "--format", "text", "--no-index").lines

    assert lines == [r"a\x1b[2J\n\r" + "\t" + r"b\x7f\x9b\x00ü€😀", r"\xff\x1b[2J"]


def test_a_terminal_shows_each_message_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.BytesIO):
        is_terminal = False
        seen = b""

        def isatty(self) -> bool:
            return self.is_terminal

        def flush(self) -> None:
            self.seen = self.getvalue()

    for is_terminal, seen in ((True, b"shown"), (False, b"")):
        screen = Screen()
        screen.is_terminal = is_terminal
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=screen))
        output = Output()
        output.write(b"shown")
        assert screen.seen == seen
        output.flush()
        assert screen.seen == b"shown"


def test_reading_changes_nothing(cli: Cli, path: Path, indexes: list[int]) -> None:
    before = snapshot(path)
    for options in (["--last", "2"], ["--reverse"], ["--metadata"], ["--from", str(indexes[3])]):
        cli.ok("read", path, "--format", "text", *options)
    assert snapshot(path) == before


def test_one_roll_file_is_read_alone(
    cli: Cli, queue: quire.JournalQueue, indexes: list[int]
) -> None:
    file = queue.file_for_cycle(queue.cycles[1])
    lines = cli.ok("read", file, "--format", "text").lines
    assert lines == [f"{indexes[n]:#x}: m{n}" for n in range(4, 7)]


def test_an_empty_queue_shows_nothing(cli: Cli, path: Path, queue: quire.JournalQueue) -> None:
    for options in ([], ["--last", "3"], ["--reverse"]):
        assert cli.ok("read", path, "--format", "text", *options).raw == b""
    ran = cli("read", path, "--from", "0x1")
    assert (ran.code, ran.err) == (1, "quire: the queue is empty: from=0x1\n")
    assert queue.first_index is None


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--from", "0x4d18ffffffff"], 1, "no message has this index: from=0x4d18ffffffff"),
        (["--from", "0x4d1900000004"], 1, "no message has this index: from=0x4d1900000004"),
        (["--follow", "--from", "0x4d1d00000009"], 1, "no message has this index"),
        (["--from", "0x7fffffffffffffff"], 1, "index out of range"),
        (["--from", "0x8000000000000000000"], 2, "is not an index"),
        (["--from", "m1"], 2, "'m1' is neither an index, such as 0x4d1900000000"),
        (["--to", "-1"], 2, "is neither an index"),
        (["--include", "("], 2, "'(' is not a regular expression: missing )"),
        (["--last", "-1"], 2, "--last"),
        (["--last", "1", "--from", "0x1"], 2, "--from and --last do not go together"),
        (["--last", "0", "--from", "0x0"], 2, "--from and --last do not go together"),
        (["--follow", "--reverse"], 2, "--follow and --reverse do not go together"),
        (["--named", "t", "--reverse"], 2, "--named and --reverse do not go together"),
        (["--format", "xml"], 2, "'xml' is not one of"),
        (["--format", "json", "--follow"], 2, "use --format jsonl"),
    ],
)
@pytest.mark.usefixtures("indexes")
def test_a_wrong_wish_is_reported_in_one_line(
    cli: Cli, path: Path, options: list[str], code: int, problem: str
) -> None:
    ran = cli("read", path, *options)

    assert (ran.code, ran.raw) == (code, b"")
    assert problem in ran.err
    assert ran.err.startswith("quire: ")
    assert ran.err.count("\n") == 1


def test_a_mistyped_path_is_reported_and_not_made(cli: Cli, tmp_path: Path) -> None:
    for options in ([], ["--named", "t"]):
        ran = cli("read", tmp_path / "no", *options)
        assert (ran.code, ran.raw) == (1, b"")
        assert ran.err == (
            f"quire: not a Chronicle Queue 5 queue: no such directory path={tmp_path / 'no'}\n"
        )
    assert not list(tmp_path.iterdir())


def test_what_came_before_damage_is_shown(
    cli: Cli, path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for number in range(3):
        appender.write_text(f"m{number}")
    position, _, _ = queue.end_of_cycle(queue.cycles[0]) or (0, 0, False)
    with Path(queue.file_for_cycle(queue.cycles[0])).open("r+b") as file:
        file.seek(position - 8)  # the last message's header
        file.write((2**29).to_bytes(4, "little"))

    ran = cli("read", path, "--format", "text", "--no-index")

    assert (ran.code, ran.lines) == (1, ["m0", "m1"])
    assert cli("read", path, "--last", "1").err == ran.err
    together = subprocess.run(
        [*COMMAND, "read", str(path), "--format", "text", "--no-index"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=ENVIRONMENT,
        text=True,
        check=False,
    )
    assert together.stdout == ran.out + ran.err
    assert "ends past the end of the file" in ran.err
    assert ran.err.count("\n") == 1


def test_a_named_tailer_is_moved_after_what_was_shown(
    cli: Cli, path: Path, queue: quire.JournalQueue, indexes: list[int]
) -> None:
    options = ["--named", "t", "--format", "text", "--no-index"]
    assert cli.ok("read", path, *options, "--count", "2").lines == ["m0", "m1"]
    assert queue.table_value("index.t") == indexes[2]
    assert cli.ok("read", path, *options, "--to", indexes[6]).lines == ["m2", "m3", "m4", "m5"]
    assert queue.table_value("index.t") == indexes[6]
    assert cli.ok("read", path, *options).lines == [f"m{n}" for n in range(6, 12)]
    assert cli.ok("read", path, *options).lines == []


class Reader:
    """A `quire read` that runs beside the test."""

    def __init__(self, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "read", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            bufsize=0,  # `communicate` would not see what `readline` had read ahead
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def end(self) -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err


def test_following_shows_what_comes_and_an_interrupt_ends_it_quietly(
    path: Path, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    for number in range(3):
        appender.write_text(f"m{number}")
    reader = Reader(path, "--format", "text", "--no-index", "--last", "1", "--follow")
    assert reader.line() == "m2"
    for number in range(3, 6):
        appender.write_text(f"m{number}")
        assert reader.line() == f"m{number}"
        clock.advance(DAY_MS)

    reader.process.send_signal(signal.SIGINT)

    code, out, err = reader.end()
    assert (code, out, err.strip()) == (130, b"", b"")


def test_following_an_empty_queue_waits_for_the_first_message(
    path: Path, appender: quire.JournalAppender
) -> None:
    reader = Reader(path, "--format", "text", "--no-index", "--follow", "--count", "1")
    appender.write_text("first")
    assert reader.end() == (0, b"first\n", b"")


def test_following_from_the_index_that_comes_next(
    path: Path, appender: quire.JournalAppender
) -> None:
    index = appender.write_text("m0")
    options = ["--format", "text", "--no-index", "--follow", "--count", "1"]
    reader = Reader(path, "--from", f"{index + 1:#x}", *options)
    appender.write_text("m1")
    assert reader.end() == (0, b"m1\n", b"")


@pytest.mark.parametrize("before", [[], [10, 20]])
def test_following_from_a_time_waits_for_it(
    path: Path,
    appender: quire.JournalAppender,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    before: list[int],
) -> None:
    def append() -> None:
        appender.write_map({"at": START_MS + next(times)})

    times = iter([*before, 40, 49, 50, 60])
    for _ in before:
        append()
    waiting = SimpleNamespace(pause=append, reset=lambda: None)
    monkeypatch.setattr(quire.pausers, "sleepy", lambda: waiting)
    options = ["--no-index", "--follow", "--count", "2", "--time-field", "at"]

    out = cli.ok("read", path, "--from", f"{START_MS + 50}ms", *options).out

    assert [int(it) for it in re.findall(r"at: (\d+)", out)] == [START_MS + 50, START_MS + 60]


def test_a_closed_pipe_ends_it_quietly(path: Path, appender: quire.JournalAppender) -> None:
    for number in range(2_000):
        appender.write_text(f"m{number} " + "x" * 500)
    for options in ([], ["--named", "t"]):
        reader = Reader(path, "--format", "text", *options)
        assert "m0 " in reader.line()
        assert reader.process.stdout is not None
        reader.process.stdout.close()

        assert reader.process.wait(300) == 1
        assert reader.process.stderr is not None
        assert reader.process.stderr.read() == b""
        reader.process.stderr.close()


def test_what_was_not_handed_on_is_read_again_by_name(
    path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    indexes = [appender.write_text(f"m{number} " + "x" * 500) for number in range(2_000)]
    reader = Reader(path, "--format", "text", "--named", "t")
    assert "m0 " in reader.line()  # now it fills the pipe, until it has to wait
    stored = 0
    while stored == 0 or stored != queue.table_value("index.t"):
        stored = queue.table_value("index.t") or 0
        time.sleep(0.2)
    reader.process.kill()

    _, out, _ = reader.end()

    shown = 1 + out.count(b"\n")
    assert indexes[0] < stored <= indexes[shown] < indexes[-1]


def test_a_message_of_megabytes_comes_through_whole(tmp_path: Path) -> None:
    payload = os.urandom(2**24)
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        appender.write_bytes(payload)

    ran = run("read", tmp_path / "q", "--format", "raw")

    assert (ran.code, ran.err) == (0, "")
    assert ran.raw == payload


@pytest.mark.usefixtures("queue")
def test_the_command_starts_without_what_it_does_not_need(path: Path) -> None:
    program = (
        "import sys; from quire.cli import main; "
        f"codes = [main([verb, {str(path)!r}]) for verb in ('read', 'stat', 'dump')]; "
        "heavy = {'asyncio', 'lark', 'logging', 'pyarrow', 'rich', 'socket'};"
        "print(codes, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stderr == "[0, 0, 0] []\n"
