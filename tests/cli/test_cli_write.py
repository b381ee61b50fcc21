"""`quire write`: lines and files become messages, and what is none is refused where it stands."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import quire
from cli_runs import COMMAND, Cli, run
from java_peer import JavaPeer
from parameters import some
from queues import payloads

TEXTS = "hello\n\nwält €😀\r\nlast without an end".encode()


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "lines"
    file.write_bytes(TEXTS)
    return file


def texts(path: Path) -> list[str | None]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [tailer.read_text() for _ in range(queue.entry_count)]


def test_each_line_is_a_text(cli: Cli, path: Path, lines: Path) -> None:
    ran = cli.ok("write", path, "--create", "--text", lines)

    assert texts(path) == ["hello", "", "wält €😀", "last without an end"]
    with quire.open(path, read_only=True) as queue:
        assert ran.out == f"written=4 last={queue.last_index:#x}\n"


def test_stdin_is_read_without_a_file_or_as_a_dash(path: Path, lines: Path) -> None:
    assert run("write", path, "--create", "--text", stdin=b"a\n").code == 0
    assert run("write", path, "--text", lines, "-", stdin=b"b\n").code == 0
    assert texts(path) == ["a", "hello", "", "wält €😀", "last without an end", "b"]


def test_lines_are_written_as_they_come(path: Path) -> None:
    with (
        quire.open(path) as queue,
        queue.tailer() as tailer,
        subprocess.Popen(
            [*COMMAND, "write", str(path), "--text"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
    ):
        assert process.stdin is not None
        for text in ("one", "two"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            tailer.wait(300)
            assert tailer.read_text() == text
        out, _ = process.communicate(timeout=300)
    assert out.startswith(b"written=2 last=0x")


def test_each_line_of_hex_is_the_bytes_of_a_message(
    cli: Cli, path: Path, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    (tmp_path / "it.hex").write_bytes(b"DEADbeef\n\n  \n00 ff 0a\r\n")
    cli.ok("write", path, tmp_path / "it.hex")
    assert payloads(queue) == [b"\xde\xad\xbe\xef", b"\x00\xff\n"]


def test_a_raw_file_is_one_message(
    cli: Cli, path: Path, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    data = os.urandom(10_000) + b"\n"
    (tmp_path / "blob").write_bytes(data)
    cli.ok("write", path, tmp_path / "blob", tmp_path / "blob", "--format", "raw")
    assert payloads(queue) == [data, data]


def test_a_line_is_the_argument_of_a_method(
    cli: Cli, path: Path, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    (tmp_path / "words").write_text("hi\n")
    cli.ok("write", path, "--text", "--method", "say", tmp_path / "words")
    assert payloads(queue) == [b"\xc3say\xe2hi"]

    ran = cli("write", path, "--hex", "--method", "say", tmp_path / "words")
    assert ran.code == 2
    assert "--method needs values, and hex is bytes" in ran.err


def maps(path: Path) -> list[object]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [tailer.read_map() for _ in range(queue.entry_count)]


def test_each_yaml_document_is_a_message(path: Path) -> None:
    text = b"""# about the file
---
a: 1
b: [x, 2.5]
--- {c: true}
...
---
# nothing but a comment
--- # the next one is a text
hello world
---
said: "--- not
  a mark"
"""
    ran = run("write", path, "--create", stdin=text)

    assert (ran.code, ran.err) == (0, "")
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.read_map() == {"a": 1, "b": ["x", 2.5]}
        assert tailer.read_map() == {"c": True}
        assert tailer.read_text() == "hello world"
        assert tailer.read_map() == {"said": "--- not a mark"}
        assert tailer.read_bytes() is None


def test_a_yaml_document_is_written_when_the_next_begins(path: Path) -> None:
    with (
        quire.open(path) as queue,
        queue.tailer() as tailer,
        subprocess.Popen(
            [*COMMAND, "write", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(b"a: 1\nb: 2\n---\n")
        process.stdin.flush()
        tailer.wait(300)
        assert tailer.read_map() == {"a": 1, "b": 2}
        process.communicate(timeout=300)


def test_each_line_of_json_is_a_message(cli: Cli, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "it.jsonl"
    file.write_text('{"a": 1, "b": {"c": [null, "ü"]}}\n\n{"d": -1.5e3}\n', "utf-8")
    cli.ok("write", path, "--create", file)
    assert maps(path) == [{"a": 1, "b": {"c": [None, "ü"]}}, {"d": -1500.0}]


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("jsonl", b'{"symbol": "EURUSD", "size": 3}\n"alone"\n7\n[1, 2]\n'),
        ("yaml", b"symbol: EURUSD\nsize: 3\n---\nalone\n---\n7\n---\n[1, 2]\n"),
        ("yaml", b"--- {symbol: EURUSD, size: 3}\n---\n'alone'\n--- 7\n---\n- 1\n- 2\n"),
    ],
)
def test_each_is_the_argument_of_a_method(path: Path, style: str, text: bytes) -> None:
    ran = run("write", path, "--create", "--format", style, "--method", "say it", stdin=text)
    assert (ran.code, ran.err) == (0, "")
    assert maps(path) == [
        {"say it": {"symbol": "EURUSD", "size": 3}},
        {"say it": "alone"},
        {"say it": 7},
        {"say it": [1, 2]},
    ]


@pytest.mark.parametrize(
    ("style", "text", "place", "item"),
    [
        ("jsonl", b'{"a": 1}\n{"a": }\n', "line=2 column=7", '{"a": }'),
        ("jsonl", b"{}\n\n{\n", "line=3 column=1", "{"),
        ("jsonl", b'{}\n1, "b": 2\n', "line=2 column=2", '1, "b": 2'),
        ("jsonl", b"{}\n" + b"[" * 1000 + b"\n", "line=2 column=65", "[" * 60 + "…"),
        ("yaml", b"a: 1\n---\nb: 1\nc: [\n  1\n", "line=6 column=1", r"b: 1\nc: [\n  1\n"),
        ("yaml", b"a: 1\n--- [1, &x 2]\n", "line=2 column=5", r"[1, &x 2]\n"),
        ("yaml", b"a: 1\n--- !!data #binary\nb\n", "line=2", r"!!data #binary\nb\n"),
        ("yaml", b"a: 1\n---\nb: \xff\n", "line=3", r"b: \\xff\n"),
    ],
)
@pytest.mark.parametrize("method", [[], ["--method", "say"]])
def test_what_does_not_parse_is_refused_where_it_stands(  # noqa: PLR0913, PLR0917 - the cases
    path: Path, style: str, text: bytes, place: str, item: str, method: list[str]
) -> None:
    ran = run("write", path, "--create", "--format", style, *method, stdin=text)

    assert ran.code == 1
    assert f"file=- {place} written=1 text='{item}" in ran.err
    assert ran.err.count("\n") == 1
    with quire.open(path) as queue:
        assert queue.entry_count == 1


@pytest.mark.java
def test_java_handles_the_calls_that_were_written(path: Path) -> None:
    for style, method, text in (
        ("text", "say", "plain\n"),
        ("yaml", "say", "two words\n---\n'x: y'\n"),
        ("jsonl", "say", '"quoted"\n'),
        ("jsonl", "leaf", '{"count": 5, "name": "bob"}\n'),
        ("yaml", "map", "k: 3\nl: 4\n"),
        ("jsonl", "ints", "[1, 2]\n"),
        ("jsonl", "price", "2.5\n"),
    ):
        options = ["--create", "--format", style, "--method", method]
        assert run("write", path, *options, stdin=text.encode()).err == ""

    lines = [json.loads(line) for line in JavaPeer().run("method-read", dir=path)]

    assert [call for line in lines for call in line["calls"]] == [
        "say(String:plain)",
        "say(String:two words)",
        "say(String:x: y)",
        "say(String:quoted)",
        "leaf(ProbeLeaf:!ProbeLeaf {\n  name: bob,\n  count: 5\n}\n)",
        "map(LinkedHashMap:{String:k=Long:3, String:l=Long:4})",
        "ints(int[]:[Integer:1, Integer:2])",
        "price(Double:2.5)",
    ]


@pytest.mark.parametrize("style", some(["yaml", "jsonl"], keep=[0]))
def test_messages_of_values_go_from_queue_to_queue(path: Path, tmp_path: Path, style: str) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for number in range(100):
            appender.write_map({"number": number, "text": "--- x\n" * (number % 3), "list": [1.5]})
        shown = run("read", path, "--no-index", "--format", style)
        copied = run("write", tmp_path / "copy", "--create", "--format", style, stdin=shown.raw)
        assert (copied.code, copied.err) == (0, "")
        assert maps(tmp_path / "copy") == maps(path)


def test_what_was_shown_can_be_written_again(path: Path, tmp_path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for payload in (bytes(range(256)), b"\n", b"\xe1a", os.urandom(70_000)):
            appender.write_bytes(payload)
        shown = run("read", path, "--format", "hex", "--no-index")
        copied = run("write", tmp_path / "copy", "--create", "--hex", stdin=shown.raw)
        assert (copied.code, copied.err) == (0, "")
        with quire.open(tmp_path / "copy") as copy:
            assert payloads(copy) == payloads(queue)


def test_a_refused_line_is_named_and_what_came_before_stays(
    cli: Cli, path: Path, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    file = tmp_path / "it"
    file.write_bytes(b"00\n01\n" + b"zz" * 99 + b"\n02\n")

    ran = cli("write", path, "--hex", file)

    assert (ran.code, ran.raw) == (1, b"")
    assert ran.err == (
        f"quire: not pairs of hexadecimal digits: file={file} line=3 written=2 text='{'z' * 60}…'\n"
    )
    assert payloads(queue) == [b"\x00", b"\x01"]


def test_refused_lines_can_be_skipped(
    cli: Cli, path: Path, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    (tmp_path / "it").write_bytes(b"00\n0\n01\nx\n")

    ran = cli("write", path, "--hex", "--on-error", "skip", tmp_path / "it")

    assert ran.code == 1
    assert ran.out == f"written=2 skipped=2 last={queue.last_index:#x}\n"
    assert [line.split(" file=")[1].split()[1] for line in ran.err.splitlines()] == [
        "line=2",
        "line=4",
    ]
    assert payloads(queue) == [b"\x00", b"\x01"]


def test_bytes_that_are_no_text_are_refused(
    cli: Cli, path: Path, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    (tmp_path / "it").write_bytes(b"good\nb\xffd\x1b\n")
    ran = cli("write", path, "--text", tmp_path / "it")
    assert ran.code == 1
    assert "not UTF-8 from byte 1 on" in ran.err
    assert r"line=2 written=1 text='b\\xffd\x1b'" in ran.err
    assert queue.entry_count == 1


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "cannot reserve space: No space left on device", "/q/20240115F.cq4"),
        quire.errors.LockTimeoutError("the write lock is held: holder_pid=1"),
    ],
)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_failure_of_the_queue_ends_it_and_tells_how_much_is_written(  # noqa: PLR0913, PLR0917
    cli: Cli,
    path: Path,
    lines: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    on_error: str,
) -> None:
    write_text = quire.JournalAppender.write_text

    def write(appender: quire.JournalAppender, text: str, /) -> int:
        if text:
            return write_text(appender, text)
        raise error

    monkeypatch.setattr(quire.JournalAppender, "write_text", write)

    ran = cli("write", path, "--create", "--text", "--on-error", on_error, lines)

    assert (ran.code, ran.raw) == (1, b"")
    assert ran.err.endswith(f" file={lines} line=2 written=1\n")
    assert ran.err.count("\n") == 1
    assert texts(path) == ["hello"]


def test_a_message_too_long_is_refused_as_a_line(
    cli: Cli, path: Path, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    (tmp_path / "it").write_bytes(b"a\n" + b"x" * 2**25 + b"\nb\n")
    ran = cli("write", path, "--text", "--on-error", "skip", tmp_path / "it")
    assert ran.code == 1
    assert "line=2 written=1" in ran.err
    assert ran.err.count("\n") == 1
    assert len(ran.err) < 500
    assert queue.entry_count == 2


def test_a_queue_is_not_made_by_mistake(cli: Cli, tmp_path: Path, lines: Path) -> None:
    ran = cli("write", tmp_path / "mistyped", "--text", lines)
    assert ran.code == 1
    assert "no such directory" in ran.err
    assert ran.err.endswith("(--create makes a queue)\n")
    assert not (tmp_path / "mistyped").exists()

    cli.ok("write", tmp_path / "meant", "--text", "--roll-cycle", "test4_daily", lines)
    with quire.open(tmp_path / "meant") as queue:
        assert queue.roll_cycle.name == "TEST4_DAILY"


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--roll-cycle", "HUGE_DAILY"], 1, "another roll cycle: asked=HUGE_DAILY"),
        (["--roll-cycle", "nothing"], 2, "no such roll cycle: name=nothing"),
        (["--format", "xml"], 2, "'xml' is not one of"),
        (["no-such-file"], 2, "'no-such-file' does not exist"),
        (["."], 2, "'.' is a directory"),
    ],
)
def test_a_wrong_wish_writes_nothing(
    cli: Cli, lines: Path, options: list[str], code: int, problem: str
) -> None:
    path = lines.with_name("queue")
    made = cli("write", path, "--roll-cycle", "TEST4_DAILY", "--text", lines)
    assert made.code == 0

    ran = cli("write", path, lines, *options)

    assert ran.code == code
    assert problem in ran.err
    assert ran.err.count("\n") == 1
    assert len(texts(path)) == 4


def test_an_interrupt_tells_how_much_is_written(path: Path) -> None:
    with (
        quire.open(path) as queue,
        queue.tailer() as tailer,
        subprocess.Popen(
            [*COMMAND, "write", str(path), "--text"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        tailer.wait(300)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.decode().startswith("quire: interrupted: written=1 last=0x")
    assert texts(path) == ["one"]


@pytest.mark.check
def test_progress_is_for_a_terminal(path: Path) -> None:
    master, slave = pty.openpty()
    seen = bytearray()

    def watch() -> None:
        try:
            while piece := os.read(master, 4096):
                seen.extend(piece)
        except OSError:  # the terminal's other side is closed
            pass

    with subprocess.Popen(
        [*COMMAND, "write", str(path), "--create", "--text"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=slave,
    ) as process:
        os.close(slave)
        watcher = threading.Thread(target=watch)
        watcher.start()
        assert process.stdin is not None
        while b"messages" not in seen:  # a hang ends with the test's time
            process.stdin.write(b"x\n" * 1000)
        process.stdin.close()
        assert process.wait(300) == 0
        watcher.join()
    os.close(master)
    assert seen.endswith(b"\x1b[2K")  # the bar is gone

    assert run("write", path, "--text", stdin=b"x\n" * 100_000).err == ""


def test_sync_waits_for_the_medium(
    cli: Cli, path: Path, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int | None] = []

    def sync(appender: quire.JournalAppender) -> None:
        synced.append(appender.last_index_appended)

    monkeypatch.setattr(quire.JournalAppender, "sync", sync)
    cli.ok("write", path, "--create", "--text", lines)
    assert synced == []
    cli.ok("write", path, "--text", "--sync", lines)
    with quire.open(path, read_only=True) as queue:
        assert synced == [queue.last_index]
