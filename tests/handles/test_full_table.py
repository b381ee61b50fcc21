"""A table that is full of names of tailers, most of them deleted."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from cli_runs import run
from reference import Store

LENGTH = 100  # of a name: about a thousand fill the table


def name_of(number: int) -> str:
    return f"{number:04}".ljust(LENGTH, "x")


def fill(queue: quire.JournalQueue, *, first: int = 0) -> int:
    """Make tailers until there is no room; the number that there was none for."""
    number = first
    while has_room(queue, name_of(number)):
        number += 1
    with pytest.raises(ValueError, match="delete unused tailers"):
        queue.tailer(name_of(number))
    return number


def has_room(queue: quire.JournalQueue, name: str) -> bool:
    try:
        queue.tailer(name).close()
    except ValueError:
        return False
    return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A full queue, of whose names all but the first ten were deleted."""
    path = tmp_path / "q"
    make(path)
    return path


def make(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for number in range(20):
            appender.write_text(str(number))
        count = fill(queue)
        for number in range(10):
            with queue.tailer(name_of(number)) as tailer:
                assert len(tailer.read_many(number + 1)) == number + 1
        for number in range(10, count):
            assert queue.delete_tailer(name_of(number))
        with pytest.raises(ValueError, match="no room"):
            queue.tailer("another")


def found(path: Path) -> list[str]:
    return [finding.kind for finding in quire.verify(path).findings]


@pytest.mark.check
@pytest.mark.skipif(sys.platform != "linux", reason="others do not say who has a file open")
def test_names_of_deleted_tailers_make_room_once_nobody_has_the_table_open(path: Path) -> None:
    assert found(path) == ["table-full"]
    with quire.open(path) as queue:
        assert found(path) == []
        again = fill(queue, first=1000)
        assert again > 1800, "as many as were deleted"
        with queue.tailer(name_of(1000)) as tailer:
            assert tailer.read_text() == "0"
        # Where they were, with the positions they had.
        for number in range(10):
            with queue.tailer(name_of(number)) as tailer:
                assert tailer.read_text() == str(number + 1)
    names = Store((path / "metadata.cq4t").read_bytes()).entries()
    assert f"index.{name_of(1000)}" in names
    assert f"index.{name_of(10)}" not in names


HOLDER = """
import sys
with open(sys.argv[1], "r+b"):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_no_room_is_used_again_while_another_process_has_the_table_open(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path / "metadata.cq4t")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with quire.open(path) as queue, pytest.raises(ValueError, match="no room"):
            queue.tailer("another")
        holder.communicate()


@pytest.mark.check
def test_stat_warns_of_a_table_with_little_room(path: Path) -> None:
    facts = json.loads(run("stat", str(path), "--json").out)
    assert facts["table_is_almost_full"]
    assert facts["table_used_percent"] > 80
    shown = run("stat", str(path)).out
    assert "% full: little room is left for names of tailers: delete unused ones" in shown
    quire.open(path).close()  # which makes room
    gc.collect()
    assert "little room" not in run("stat", str(path)).out


LEASE_HOLDER = """
import fcntl, os, signal, sys

table = os.open(sys.argv[1], os.O_RDWR)

def end_lease(number, frame):
    fcntl.fcntl(table, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    print("asked", flush=True)

signal.signal(signal.SIGIO, end_lease)
fcntl.fcntl(table, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.check
@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_queue_opens_while_another_process_asks_whether_it_is_alone(tmp_path: Path) -> None:
    quire.open(tmp_path / "q").close()
    gc.collect()
    command = [sys.executable, "-c", LEASE_HOLDER, str(tmp_path / "q" / "metadata.cq4t")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with quire.open(tmp_path / "q") as queue:
            assert holder.stdout.readline() == b"asked\n"
            queue.appender().write_bytes(b"a")
        holder.communicate()
