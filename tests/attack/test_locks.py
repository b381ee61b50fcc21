"""
Holders of the write lock that stop, die, turn into others, or live in another pid namespace.

A living holder is never robbed; a dead one is never waited for, whatever its number says here.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import quire
import quire_peer
from java_peer import JavaProcess
from queues import UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, poke, problems_of
from tally import Tally, scaled

pytestmark = pytest.mark.slow

PEER = str(Path(quire_peer.__file__).resolve())
NOT_A_WAIT_S = 120.0  # far above what a recovery takes, far below the timeout
PATIENCE_S = 600.0
START_S = 120.0
SHORT_S = 0.3
HALF = b"half a message"  # what quire_peer writes into the document that it holds
PROMISE = "The write lock is taken from dead holders at once, and from live ones never."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue with one message."""
    with quire.open(tmp_path / "queue", roll_cycle="FAST_DAILY", block_bytes=2**16) as queue:
        queue.appender().write_bytes(b"before")
    return tmp_path / "queue"


def hold(path: Path) -> None:
    """Open a document, as a process that is not going to close it."""
    document = quire.open(path).appender().writing_document()
    document.write_bytes(b"never finished")


def append_at_once(path: Path, payload: bytes = b"after") -> None:
    """Append with much patience, which must not be needed."""
    with quire.open(path, timeout_s=PATIENCE_S) as queue, queue.appender() as appender:
        start = time.monotonic()
        appender.write_bytes(payload)
        assert time.monotonic() - start < NOT_A_WAIT_S
        assert queue.table_value(WRITE_LOCK) == UNLOCKED


def assert_not_robbed(path: Path, holder: int) -> None:
    """Patience ends, and the lock is still the holder's."""
    with quire.open(path, timeout_s=SHORT_S) as queue:
        with pytest.raises(quire.errors.LockTimeoutError, match=f"holder_pid={holder} "):
            queue.appender().write_bytes(b"robbed")
        assert queue.table_value(WRITE_LOCK) == holder


def assert_holds(path: Path, expected: list[bytes]) -> None:
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == expected
    assert problems_of(path) == []


def test_a_zombie_is_dead(path: Path) -> None:
    def die() -> None:
        hold(path)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = fork(die)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    append_at_once(path)
    assert exit_code(pid) == -signal.SIGKILL
    assert_holds(path, [b"before", b"after"])


def test_a_holder_that_became_another_program_is_dead(path: Path) -> None:
    receiver, sender = os.pipe()

    def turn() -> None:
        hold(path)
        os.dup2(sender, 1)
        os.execv("/bin/sh", ["sh", "-c", "echo; sleep 600"])  # noqa: S606 - any program will do

    pid = fork(turn)
    assert os.read(receiver, 1) == b"\n"
    append_at_once(path)
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)
    assert exit_code(pid) == -signal.SIGKILL
    os.close(receiver)
    os.close(sender)
    assert_holds(path, [b"before", b"after"])


def test_who_waits_already_goes_on_when_the_holder_dies(path: Path) -> None:
    """Several of them, each with a message."""
    with quire_peer.start("produce", dir=path, count=0, hold="document") as holder:
        holder.read_until("HOLDING", START_S)
        waiters = [fork(lambda number=number: wait(path, number)) for number in range(4)]  # type: ignore[misc]
        time.sleep(0.5)
        holder.kill()
        start = time.monotonic()
        assert [exit_code(waiter) for waiter in waiters] == [0] * 4
        assert time.monotonic() - start < NOT_A_WAIT_S
    with quire.open(path, read_only=True) as queue:
        assert sorted(payloads(queue)) == [b"0", b"1", b"2", b"3", b"before"]
    assert problems_of(path) == []


def wait(path: Path, number: int) -> None:
    with quire.open(path, timeout_s=PATIENCE_S) as queue:
        queue.appender().write_bytes(b"%d" % number)


def test_a_stopped_holder_keeps_the_lock_by_default(path: Path) -> None:
    with quire_peer.start("produce", dir=path, count=0, hold="document") as holder:
        holder.read_until("HOLDING", START_S)
        os.kill(holder.pid, signal.SIGSTOP)
        assert_not_robbed(path, holder.pid)
        os.kill(holder.pid, signal.SIGCONT)
        int(holder.ask("close", START_S), 16)
    append_at_once(path)
    assert_holds(path, [b"before", HALF, b"after"])


@pytest.mark.parametrize("count", [1, 300])
def test_a_robbed_document_publishes_nothing(path: Path, count: int) -> None:
    thefts = [b"theft %d" % number * (1 + number % 50) for number in range(count)]
    with quire_peer.start("produce", dir=path, count=0, hold="document") as holder:
        holder.read_until("HOLDING", START_S)
        os.kill(holder.pid, signal.SIGSTOP)
        with quire.open(path, timeout_s=SHORT_S, force_unlock="always") as thief:
            thief.appender().write_many(thefts)
        os.kill(holder.pid, signal.SIGCONT)
        assert holder.ask("close", START_S).startswith("! LockLostError")
    append_at_once(path)
    assert_holds(path, [b"before", *thefts, b"after"])


def test_a_bulk_write_that_is_stopped_is_not_robbed(path: Path, tally: Tally) -> None:
    """At random instants: where the lock is free meanwhile, others append."""

    receiver, sender = os.pipe()

    def bulk() -> None:
        with quire.open(path) as queue, queue.appender() as appender:
            os.write(sender, b"!")  # the table's key lock, which opening takes, is never forced
            for first in range(0, 10**9, 1000):
                appender.write_many([b"%d" % number for number in range(first, first + 1000)])

    pid, refused, stops = fork(bulk), 0, scaled(20, 500)
    os.read(receiver, 1)
    os.close(receiver)
    os.close(sender)
    rng = random.Random(4)  # noqa: S311 - instants
    for _ in range(stops):
        time.sleep(rng.uniform(0, 0.005))
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        with quire.open(path, timeout_s=0.05) as queue:
            if queue.table_value(WRITE_LOCK) == pid:
                refused += 1
                with pytest.raises(quire.errors.LockTimeoutError):
                    queue.appender().write_bytes(b"robbed")
            else:
                queue.appender().write_bytes(b"between")
        os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    assert exit_code(pid) == -signal.SIGKILL
    append_at_once(path)
    with quire.open(path, read_only=True) as queue:
        found = payloads(queue)
    assert found.count(b"between") == stops - refused
    own = [data for data in found if data.isdigit()]
    assert own == [b"%d" % number for number in range(len(own))]
    tally(PROMISE, stops, "stops of a bulk write")


@cache
def why_not_unshared() -> str | None:
    """Say why there cannot be another pid namespace here."""
    if shutil.which("unshare") is None:
        return "no unshare on the PATH"
    number = [*unshared(77), "sh", "-c", "test $$ = 77 && test -e /proc/77"]
    done = subprocess.run(number, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return f"no pid namespace with numbers of one's choice: {done.stderr.strip() or 'other pid'}"


def unshared(pid: int) -> list[str]:
    """Start a command line that gives the program behind it this pid, in a namespace of its own."""
    namespace = ["--user", "--map-root-user", "--mount", "--pid", "--mount-proc"]
    start = ["unshare", *namespace, "--fork", "--kill-child=KILL"]
    if pid == 1:
        return start
    before = f'echo {pid - 1} > /proc/sys/kernel/ns_last_pid; "$@"; exit $?'
    return [*start, "sh", "-c", before, "sh"]


@pytest.fixture
def namespaces() -> None:
    """Need pid namespaces."""
    if why := why_not_unshared():
        pytest.skip(why)


def ended_pid() -> int:
    return_code = fork(lambda: None)
    exit_code(return_code)
    return return_code


NUMBERS: dict[str, Callable[[], int]] = {
    "of init": lambda: 1,
    "of nobody here": ended_pid,
    "of this process": os.getpid,
    "of another program": os.getppid,
}


def is_init_seen() -> bool:
    try:
        return bool(Path("/proc/1/maps").read_bytes())
    except PermissionError:
        return False


@contextmanager
def elsewhere(path: Path, pid: int) -> Generator[JavaProcess]:
    """A holder that has this pid in another namespace."""
    options = f'{{"dir": "{path}", "count": 0, "hold": "document"}}'
    command = [*unshared(pid), sys.executable, PEER, "produce", options]
    with JavaProcess(command) as holder:
        holder.read_until("HOLDING", START_S)
        yield holder


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("number", NUMBERS)
def test_a_living_holder_in_another_namespace_is_not_robbed(path: Path, number: str) -> None:
    pid = NUMBERS[number]()
    with elsewhere(path, pid) as holder:
        with quire.open(path):  # opening takes the locks of dead holders
            pass
        assert_not_robbed(path, pid)
        int(holder.ask("close", START_S), 16)
    append_at_once(path)
    assert_holds(path, [b"before", HALF, b"after"])


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_dead_holder_in_another_namespace_is_not_waited_for(
    path: Path, number: str, *, waits: bool
) -> None:
    with quire.open(path, timeout_s=PATIENCE_S) as queue:
        appender = queue.appender() if waits else None
        with elsewhere(path, NUMBERS[number]()) as holder:
            holder.kill()
        if number == "of init" and not is_init_seen():
            assert_not_robbed(path, 1)  # it might be a Java process that holds the lock
            return
        start = time.monotonic()
        (appender or queue.appender()).write_bytes(b"after")
        assert time.monotonic() - start < NOT_A_WAIT_S
    assert_holds(path, [b"before", b"after"])


MAPS = """
import mmap, sys
with open(sys.argv[1], "r+b") as table, mmap.mmap(table.fileno(), 0):
    print("READY", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("number", NUMBERS)
def test_a_holder_without_a_liveness_byte_is_seen_in_a_namespace_inside_of_this_one(
    path: Path, number: str
) -> None:
    """As a Java process in a container is from its host."""
    pid = NUMBERS[number]()
    command = [*unshared(pid), sys.executable, "-c", MAPS, str(path / "metadata.cq4t")]
    with JavaProcess(command) as holder:
        holder.read_until("READY", START_S)
        poke(path, WRITE_LOCK, pid)
        with quire.open(path, timeout_s=SHORT_S) as queue:
            with pytest.raises(quire.errors.LockTimeoutError) as caught:
                queue.appender().write_bytes(b"robbed")
            assert queue.table_value(WRITE_LOCK) == pid
        said = str(caught.value)
        found = re.search(
            rf"holder_pid={pid} .*another pid namespace, and is process (\d+) in this one",
            said,
        )
        assert found is not None, said
        assert int(found[1]) != pid
        assert Path(f"/proc/{found[1]}/maps").read_text().count("metadata.cq4t")
        holder.kill()
        if number == "of init" and not is_init_seen():
            return
        append_at_once(path)
    assert_holds(path, [b"before", b"after"])


@pytest.mark.usefixtures("namespaces")
def test_two_containers_in_which_every_pid_is_1(path: Path) -> None:
    options = f'{{"dir": "{path}", "count": 1, "timeout_s": 0.3}}'
    append = [*unshared(1), sys.executable, PEER, "produce", options]
    with elsewhere(path, 1) as holder:
        refused = subprocess.run(append, capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert "LockTimeoutError: the write lock stayed taken: holder_pid=1 " in refused.stderr
        holder.kill()
        subprocess.run(append, capture_output=True, check=True)
    with quire.open(path, read_only=True) as queue:
        assert len(payloads(queue)) == 2
    assert problems_of(path) == []


REUSE = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[2])
import quire
from queues import exit_code, fork
path, new = sys.argv[1], sys.argv[3]

def hold():
    quire.open(path).appender().writing_document().write_bytes(b"never finished")
    os.kill(os.getpid(), signal.SIGKILL)

def live():
    queue = quire.open(path) if new == "writer" else None
    os.write(sender, b"!")
    time.sleep(600)

receiver, sender = os.pipe()
dead = fork(hold)
assert exit_code(dead) == -signal.SIGKILL
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(dead - 1))
living = fork(live)
assert living == dead, (living, dead)
os.read(receiver, 1)
with quire.open(path, timeout_s=600) as queue:
    start = time.monotonic()
    queue.appender().write_bytes(b"after")
    print(time.monotonic() - start)
os.kill(living, 9)
"""


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("new", ["stranger", "writer"])
def test_a_dead_holders_pid_that_is_used_again_does_not_hold_the_lock(path: Path, new: str) -> None:
    tests = str(Path(quire_peer.__file__).parent)
    program = [*unshared(2000), sys.executable, "-c", REUSE, str(path), tests, new]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < NOT_A_WAIT_S
    assert_holds(path, [b"before", b"after"])
