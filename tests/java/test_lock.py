"""The write lock between Quire and Java: who waits for whom, who may take it from whom."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

import quire
import quire_peer
from java_peer import JavaPeer, JavaPeerError, JavaProcess
from queues import UNLOCKED, WRITE_LOCK, copy_of, payloads, poke

pytestmark = pytest.mark.java

Mode: TypeAlias = Literal["dead", "never", "always"]
TIMEOUT_S = 0.5
PATIENCE_S = 1.5 * TIMEOUT_S  # what an append waits for the lock
LONG_S = 600.0
NOT_A_WAIT_S = 120.0  # far above what a recovery takes, far below the timeout
HALF = b"half a message"  # what quire_peer writes into the document that it holds


@pytest.fixture(scope="module")
def peer() -> JavaPeer:
    return JavaPeer()


@pytest.fixture(scope="module")
def queue_of_java(peer: JavaPeer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("java")
    peer.run("write", dir=path, count=1, roll_cycle="TEST4_DAILY", block_size=65536)
    return path


@pytest.fixture
def path(queue_of_java: Path, tmp_path: Path) -> Path:
    """A queue of Java's with one message."""
    return copy_of(queue_of_java, tmp_path / "queue")


@pytest.fixture
def idle_java(peer: JavaPeer, path: Path) -> Iterator[JavaProcess]:
    """A JVM that has the queue open and does nothing."""
    with peer.start("tailer-script", dir=path) as java:
        assert java.ask("toStart") == "ok"
        yield java


@pytest.fixture(params=["dead", "dead, with a thread", "own, left over", "another program"])
def nobody(request: pytest.FixtureRequest) -> Iterator[int]:
    """A lock word that names no holder."""
    match request.param:
        case "dead":
            yield dead_pid()
        case "dead, with a thread":
            yield 7 << 32 | dead_pid()
        case "own, left over":
            yield os.getpid()
        case _:
            with subprocess.Popen(["sleep", "60"]) as program:  # noqa: S607 - any will do
                yield program.pid
                program.kill()


def dead_pid() -> int:
    """The pid of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def append(path: Path, mode: Mode, holder: int, timeout_s: float = TIMEOUT_S) -> float:
    """Appends while the lock word names `holder`; returns how long that took."""
    with (
        quire.open(path, timeout_s=timeout_s, force_unlock=mode) as queue,
        queue.appender() as appender,
    ):
        poke(path, WRITE_LOCK, holder)
        start = time.monotonic()
        try:
            appender.write_text("appended")
        except quire.errors.LockTimeoutError:
            assert queue.table_value(WRITE_LOCK) == holder
            raise
        took = time.monotonic() - start
        assert queue.table_value(WRITE_LOCK) == UNLOCKED
        return took


def assert_refused(path: Path, mode: Mode, holder: int) -> None:
    """The error names the holder and the time waited; nothing was written."""
    with pytest.raises(quire.errors.LockTimeoutError) as caught:
        append(path, mode, holder)
    found = re.search(r"holder_pid=(\d+) .*waited_ms=(\d+)", str(caught.value))
    assert found, str(caught.value)
    assert int(found[1]) == holder & 0xFFFFFFFF
    assert int(found[2]) / 1000 >= PATIENCE_S
    poke(path, WRITE_LOCK, UNLOCKED)
    with quire.open(path) as queue:
        assert queue.entry_count == 1


@pytest.mark.parametrize("mode", ["dead", "always"])
def test_a_lock_of_nobody_is_taken_at_once(path: Path, mode: Mode, nobody: int) -> None:
    assert append(path, mode, nobody, LONG_S) < NOT_A_WAIT_S


def test_mode_never_takes_no_lock(path: Path, nobody: int) -> None:
    assert_refused(path, "never", nobody)


@pytest.mark.parametrize("mode", ["dead", "never"])
def test_a_living_jvm_keeps_the_lock(path: Path, idle_java: JavaProcess, mode: Mode) -> None:
    assert_refused(path, mode, idle_java.pid)


def test_mode_always_takes_it_when_the_wait_is_over(path: Path, idle_java: JavaProcess) -> None:
    assert append(path, "always", idle_java.pid) >= PATIENCE_S


def test_init_keeps_the_lock_unless_it_is_seen_not_to_have_the_queue(path: Path) -> None:
    try:
        seen = bool(Path("/proc/1/maps").read_bytes())
    except PermissionError:
        seen = False
    if seen:
        assert append(path, "dead", 1, LONG_S) < NOT_A_WAIT_S
    else:
        assert_refused(path, "dead", 1)


def test_opening_gives_a_dead_holders_lock_back(path: Path) -> None:
    poke(path, WRITE_LOCK, dead_pid())
    with quire.open(path) as queue:
        assert queue.table_value(WRITE_LOCK) == UNLOCKED


@pytest.mark.parametrize("holder", ["java", "quire"])
def test_who_waits_for_a_killed_holder_goes_on_at_once(
    peer: JavaPeer, path: Path, holder: str
) -> None:
    with (
        holding(peer, path, holder) as process,
        quire.open(path, timeout_s=LONG_S) as queue,
        queue.appender() as appender,
    ):
        waiter = threading.Thread(target=appender.write_text, args=["appended"])
        waiter.start()
        waiter.join(0.5)
        assert waiter.is_alive()
        process.kill()
        waiter.join(NOT_A_WAIT_S)
        assert not waiter.is_alive()
    assert_sound(peer, path, [b"\xe9message 0", b"\xe8appended"])


def holding(peer: JavaPeer, path: Path, who: str) -> JavaProcess:
    """A process inside an open document."""
    if who == "java":
        process = peer.start("produce", dir=path, count=0, hold_open_document=True)
    else:
        process = quire_peer.start("produce", dir=path, count=0, hold="document")
    process.read_until("HOLDING")
    return process


def assert_sound(peer: JavaPeer, path: Path, expected: list[bytes]) -> None:
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == expected
    found = peer.check(path)
    for count in ("count", "backward", "moved", "countExcerpts", "entryCount"):
        assert found[count] == len(expected), count
    assert [bytes.fromhex(line.split()[2]) for line in peer.run("list", dir=path)] == expected


def test_a_living_java_holder_is_waited_for(peer: JavaPeer, path: Path) -> None:
    with (
        peer.start("produce", dir=path, count=0, hold_open_document=True, hold_ms=2000) as java,
        quire.open(path) as queue,
        queue.appender() as appender,
    ):
        java.read_until("HOLDING")
        appender.write_text("appended")
        java.expect("DONE")
    assert_sound(peer, path, [b"\xe9message 0", b"\xe8appended"])


def test_java_waits_for_a_living_quire_holder(peer: JavaPeer, path: Path) -> None:
    with holding(peer, path, "quire") as process:
        with pytest.raises(JavaPeerError, match="UnrecoverableTimeoutException"):
            peer.run("write", dir=path, count=1, timeout_ms=500)
        with peer.start("tailer-script", dir=path) as java:
            assert java.ask("toEnd") == "ok"
            java.send("appendText message 1")
            index = process.ask("close")
            assert java.read_line() == f"{int(index, 16) + 1:x}"
    assert_sound(peer, path, [b"\xe9message 0", HALF, b"\xe9message 1"])


@pytest.mark.parametrize("thief", ["java", "quire"])
def test_a_stopped_holder_that_lost_the_lock_publishes_nothing(
    peer: JavaPeer, path: Path, thief: str
) -> None:
    """The stopped process is alive: only mode "always" takes the lock from it."""
    expected = [b"\xe9message 0", *(b"\xe9message %d" % number for number in range(1, 6))]
    with holding(peer, path, "quire") as process:
        os.kill(process.pid, signal.SIGSTOP)
        if thief == "quire":
            with quire.open(path, timeout_s=TIMEOUT_S, force_unlock="always") as queue:
                for payload in expected[1:]:
                    queue.appender().write_bytes(payload)
        else:
            java, *rest = peer.command("write", dir=path, count=5, first=1, timeout_ms=500)
            subprocess.run([java, "-Dqueue.force.unlock.mode=ALWAYS", *rest], check=True)
        os.kill(process.pid, signal.SIGCONT)
        assert process.ask("close").startswith("! LockLostError")
    assert_sound(peer, path, expected)


def test_a_holder_that_lost_the_lock_leaves_it_to_the_thief(peer: JavaPeer, path: Path) -> None:
    with (
        holding(peer, path, "quire") as process,
        quire.open(path, timeout_s=TIMEOUT_S, force_unlock="always") as queue,
        queue.appender() as appender,
    ):
        os.kill(process.pid, signal.SIGSTOP)
        with appender.writing_document() as document:
            document.write_bytes(b"of the thief")
            os.kill(process.pid, signal.SIGCONT)
            assert process.ask("close").startswith("! LockLostError")
            assert queue.table_value(WRITE_LOCK) == os.getpid()
    assert_sound(peer, path, [b"\xe9message 0", b"of the thief"])


def test_a_stopped_java_holder_keeps_the_lock_by_default(peer: JavaPeer, path: Path) -> None:
    with peer.start("produce", dir=path, count=0, hold_open_document=True, hold_ms=100) as java:
        java.read_until("HOLDING")
        os.kill(java.pid, signal.SIGSTOP)
        with quire.open(path, timeout_s=TIMEOUT_S) as queue:
            with pytest.raises(quire.errors.LockTimeoutError):
                queue.appender().write_text("robbed")
            os.kill(java.pid, signal.SIGCONT)
            java.expect("DONE")
            queue.appender().write_text("appended")
    assert_sound(peer, path, [b"\xe9message 0", b"\xe8appended"])
