"""Errors say what is wrong with what, in the words of the API, and what to do about it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import quire
from queues import exit_code, fork

NOBODY = 65_534
DAY_MS = 86_400_000


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="quire-words-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_what_is_not_permitted_names_the_options(shared: Path) -> None:
    quire.open(shared / "q").close()
    (shared / "q").chmod(0o755)
    (shared / "q" / "metadata.cq4t").chmod(0o644)

    def child() -> None:
        os.setuid(NOBODY)
        for path in (shared / "q", shared / "new"):
            with pytest.raises(PermissionError) as refused:
                quire.open(path)
            assert "read_only=True" in str(refused.value)
            assert "file_mode=" in str(refused.value)
            assert "PosixPath" not in str(refused.value)

    assert exit_code(fork(child)) == 0


def test_closed_handles_name_their_queue(tmp_path: Path) -> None:
    queue = quire.open(tmp_path)
    appender, tailer = queue.appender(), queue.tailer()
    reader = queue.tailer().method_reader(Silent())
    with appender.writing_document() as written:
        written.write_bytes(b"x")
    with tailer.reading_document() as read:
        pass
    appender.close()
    tailer.close()
    reader.close()
    cases: list[tuple[Callable[[], object], str, str]] = [
        (lambda: appender.write_bytes(b"x"), "appender", "queue.appender()"),
        (tailer.read, "tailer", "queue.tailer()"),
        (reader.read_one, "method reader", "tailer.method_reader()"),
        (lambda: written.write_bytes(b"x"), "document", "close()"),
        (read.text, "document", "close()"),
    ]
    for call, name, way_out in cases:
        with pytest.raises(quire.errors.ClosedError) as closed:
            call()
        assert str(closed.value).startswith(f"the {name} is closed: path={tmp_path} (")
        assert way_out in str(closed.value)
    queue.close()
    with pytest.raises(quire.errors.ClosedError, match=r"the queue is closed: path=.*quire\.open"):
        queue.tailer()


class Silent:
    def say(self, text: str) -> None: ...


def test_a_roll_in_a_removed_directory_says_what_to_do(tmp_path: Path) -> None:
    clock = quire.ManualClock(0)
    path = tmp_path / "q"
    with quire.open(path, clock=clock, roll_cycle="FAST_DAILY") as queue:
        appender = queue.appender()
        appender.write_bytes(b"x")
        shutil.rmtree(path)
        clock.advance(DAY_MS)
        with pytest.raises(quire.errors.TableLostError, match="open it again") as failed:
            appender.write_bytes(b"y")
    assert "entity" not in str(failed.value)


def test_an_error_of_the_system_has_its_number_and_a_plain_path(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotADirectoryError) as failed:
        quire.open(file / "q")
    assert failed.value.errno == errno.ENOTDIR
    assert failed.value.filename == str(file / "q")
    assert "PosixPath" not in str(failed.value)


def test_indexes_in_errors_are_hexadecimal(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        index = appender.write_bytes(b"x")
        tailer.read()
        with pytest.raises(quire.errors.WaitTimeoutError, match=f"index={index + 1:#x}$"):
            tailer.wait(0)


def test_an_alias_that_is_taken_names_both_classes() -> None:
    @quire.message(alias="words.Taken")
    @dataclass
    class First:
        x: int

    with pytest.raises(TypeError) as taken:

        @quire.message(alias="words.Taken")
        @dataclass
        class Second:  # pyright: ignore[reportUnusedClass]
            x: int

    for part in ("alias=words.Taken", First.__qualname__, "<locals>.Second", "another alias="):
        assert part in str(taken.value)


@pytest.mark.parametrize(
    "call",
    [
        "tailer.read_batch()",
        "tailer.read_batch(schema={'x': 'int64'})",
        "quire.Schema({'x': 'int64'})",
        "quire.Schema.of_value()",
        "appender.write_batch(None)",
    ],
)
def test_what_needs_pyarrow_names_the_extra(tmp_path: Path, call: str) -> None:
    program = f"""if True:
        import sys
        sys.modules["pyarrow"] = None
        import quire
        queue = quire.open({str(tmp_path)!r})
        appender, tailer = queue.appender(), queue.tailer()
        try:
            {call}
        except ImportError as error:
            print(error)
    """
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "batches and schemas need pyarrow: pip install 'quire[arrow]'\n"
