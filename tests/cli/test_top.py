"""The verb `quire top`: samples for programs, and the screen as a real process on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

import quire
from cli_runs import COMMAND, ENVIRONMENT, Cli


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two queues in a directory."""
    for name in ("fills", "orders"):
        with quire.open(tmp_path / name) as queue, queue.appender() as appender:
            appender.write_many([b"one", b"two"])
            with queue.tailer("risk") as tailer:
                tailer.read_bytes()
    return tmp_path


def once(cli: Cli, *arguments: str | Path) -> str:
    return cli.ok("top", *arguments, "--once", "--interval", "0.1").out


def test_one_sample_is_a_table(cli: Cli, folder: Path) -> None:
    heading, fills, orders = once(cli, folder).splitlines()
    assert heading.split()[:3] == ["queue", "state", "messages_per_second"]
    assert [fills.split()[:2], orders.split()[:2]] == [["fills", "ok"], ["orders", "ok"]]


def test_one_sample_has_everything_in_json(cli: Cli, folder: Path) -> None:
    (found,) = json.loads(once(cli, folder / "orders", "--format", "json"))
    assert (found["queue"], found["state"], found["messages_per_second"]) == ("orders", "ok", 0)
    (tailer,) = found["tailers"]
    assert (tailer["name"], tailer["lag"], found["lag"]) == ("risk", 1, 1)
    assert found["disk"]["free"] > 0


@pytest.mark.parametrize("style", ["yaml", "csv", "arrow"])
def test_one_sample_comes_in_every_format(cli: Cli, folder: Path, style: str) -> None:
    ran = cli("top", folder, "--once", "--interval", "0.1", "--format", style)
    assert (ran.code, ran.err) == (0, "")
    assert b"orders" in ran.raw


def test_lines_come_until_the_process_is_interrupted(folder: Path) -> None:
    command = [*COMMAND, "top", str(folder), "--format", "jsonl", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        rows = [json.loads(line) for line in _lines(process.stdout, 6)]
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait() == 130
    assert [it["queue"] for it in rows] == ["fills", "orders"] * 3
    assert [it["messages_per_second"] for it in rows] == [None] * 2 + [0] * 4


def _lines(stream: IO[bytes], count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield stream.readline()


def test_a_screen_needs_a_terminal(cli: Cli, folder: Path) -> None:
    ran = cli("top", folder)
    assert ran.code == 2
    assert "a live view needs a terminal: give --once or --format jsonl" in ran.err
    ran = cli("top", folder, "--format", "csv")
    assert ran.code == 2
    assert "--format csv needs --once" in ran.err


def test_a_path_without_a_queue_is_refused(cli: Cli, tmp_path: Path) -> None:
    ran = cli("top", tmp_path / "nothing", "--once")
    assert ran.code == 1
    assert str(tmp_path / "nothing") in ran.err
    assert ran.err.count("\n") == 1


@contextmanager
def terminal(*arguments: str | Path, **environment: str) -> Generator[tuple[Any, int]]:
    """Run the command on a terminal of 80 columns; yield the process and the terminal."""
    shown, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=side,
        stdout=side,
        stderr=side,
        env=ENVIRONMENT | {"TERM": "xterm-256color"} | environment,
        start_new_session=True,
    ) as process:
        os.close(side)
        try:
            yield process, shown
        finally:
            process.kill()
            os.close(shown)


def read_until(shown: int, text: bytes) -> bytes:
    found = b""
    while text not in found:
        found += os.read(shown, 1 << 16)
    return found


def test_the_screen_runs_on_a_terminal_and_leaves_it_as_it_was(folder: Path) -> None:
    with terminal("top", folder, "--interval", "0.2") as (process, shown):
        before = read_until(shown, b"orders")
        assert b"\x1b[?1049h" in before  # the alternate screen
        os.write(shown, b"s")
        read_until(shown, b"by msg/s")
        os.write(shown, b"q")
        read_until(shown, b"\x1b[?1049l")
        assert process.wait() == 0


@pytest.mark.parametrize("ends", ["key", "signal"])
def test_the_screen_ends_by_ctrl_c_and_by_sigterm(folder: Path, ends: str) -> None:
    with terminal("top", folder, "--interval", "0.2") as (process, shown):
        read_until(shown, b"orders")
        os.write(shown, b"/")  # into the filter, where Ctrl-C copies in other programs
        if ends == "key":
            os.write(shown, b"\x03")
        else:
            process.terminate()
        left = read_until(shown, b"\x1b[?1049l")
        assert b"\x1b[?25h" in left + drained(shown)  # the cursor is back
        assert process.wait() == 0


def drained(shown: int) -> bytes:
    found = b""
    with suppress(OSError):  # when the process has ended
        while data := os.read(shown, 1 << 16):
            found += data
    return found


def test_the_screen_survives_files_that_are_truncated(folder: Path) -> None:
    with terminal("top", folder, "--interval", "0.2") as (process, shown):
        read_until(shown, b"orders")
        for file in folder.glob("*/*.cq4*"):
            os.truncate(file, 100)
        read_until(shown, b"corrupt file")
        os.write(shown, b"q")
        read_until(shown, b"\x1b[?1049l")
        assert process.wait() == 0


def test_without_textual_the_command_says_what_to_install(folder: Path) -> None:
    program = (
        "import sys; sys.modules['textual'] = None; from quire.cli import main;sys.exit(main())"
    )
    shown, side = pty.openpty()
    done = subprocess.run(
        [COMMAND[0], "-c", program, "top", str(folder)],
        stdin=side,
        stdout=side,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(side)
    os.close(shown)
    assert done.returncode == 1
    assert done.stderr == b"quire: the screen needs textual: pip install 'quire[top]'\n"
