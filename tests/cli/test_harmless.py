"""What a queue, a path or a tailer's name holds cannot work a terminal."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS, store_as
from quire._common.terminal import escape_controls, escape_json, escape_line

BAD = "a\x1b[31m\u202eb\u2066c\x07\x9b2J"
UNSEEN = {"Cc", "Cf", "Zl", "Zp"}


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


def is_harmless(text: str) -> bool:
    return all(unicodedata.category(one) not in UNSEEN or one in "\t\n" for one in text)


def test_escapes_and_turned_text_are_shown_as_what_they_are() -> None:
    shown = "a\\x1b[31m\\u202eb\\u2066c\\x07\\x9b2J"
    assert escape_controls(BAD) == escape_line(BAD) == shown
    assert escape_line("a\nb\r\u2028") == "a\\nb\\r\\u2028"
    assert escape_controls("a\tb\n\u00a0\u4e2d\U0001f468\u200d\U0001f469") == (
        "a\tb\n\u00a0\u4e2d\U0001f468\u200d\U0001f469"
    )
    assert escape_json('"\u202e\x9b"') == '"\\u202e\\u009b"'
    assert escape_controls("\ud800\U000e0001") == "\\ud800\\U000e0001"


@pytest.mark.parametrize(
    "verb", ["read", "tail", "history", "stat", "dump", "replay", "diff", "write", "archive"]
)
def test_a_path_in_an_error_is_harmless(cli: Cli, tmp_path: Path, verb: str) -> None:
    path = tmp_path / BAD
    more = {"diff": [path], "archive": [tmp_path / "dest"]}.get(verb, [])
    ran = cli(verb, path, *more)
    assert ran.code != 0
    assert is_harmless(ran.err)
    assert "\\x1b[31m\\u202eb" in ran.err


def test_names_and_messages_are_harmless(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / BAD
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_text(BAD)
        appender.write_map({BAD.replace("\u202e", "").replace("\u2066", ""): BAD})
        queue.tailer("t##2J").close()
    store_as(path, "t##2J", b"t\x9b\x1b2J")
    for verb, *more in (["read"], ["stat"], ["dump"], ["read", "--format", "jsonl"]):
        ran = cli(verb, path, *more)
        assert ran.code == 0
        assert verb == "dump" or is_harmless(ran.out), verb
        assert verb != "stat" or "t\\x9b\\x1b2J" in ran.out


def test_what_the_kernel_logs_is_harmless(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / BAD
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        appender.write_text("ended by nobody")
        (file,) = path.glob("*.cq4")
        clock.advance(DAY_MS)
        appender.write_text("a day later")
        without_end = file.read_bytes()
        file.write_bytes(without_end[: without_end.rindex(b"\x00\x00\x00\xc0")] + bytes(4096))
        with queue.tailer() as tailer:
            list(tailer)
    assert caplog.messages
    assert all(is_harmless(line) and "\\u202e" in line for line in caplog.messages)


def test_a_report_shows_names_as_text() -> None:
    from quire.pipeline.run_report.as_text import escape

    assert escape(f"[red]{BAD}\n") == f"\\[red]{escape_line(BAD)}\\n"
