"""Members of an in-sync set that are away: dropped or forgotten, back again, and counted again."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

import quire
from cli_runs import run, started
from cluster import Cluster, cluster_of
from ports import free_port
from queues import problems_of
from quire._native import ReplicaStates
from quire.errors import WaitTimeoutError
from quire.replication.in_sync import InSyncSet
from replicas import HANG_S, last_index, messages, wait_until

pytestmark = pytest.mark.check
LIMIT_S = 60.0
AWAY = pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"]
)


class Sinks:
    """Processes of ``quire replicate sink`` for one source, by their names."""

    def __init__(self, folder: Path, port: int, stack: ExitStack) -> None:
        self._folder, self._port, self._stack = folder, port, stack
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def copy(self, name: str) -> Path:
        return self._folder / name

    def start(self, name: str) -> None:
        arguments = ("sink", self.copy(name), "--from", f"127.0.0.1:{self._port}", "--name", name)
        process = self._stack.enter_context(started("replicate", *arguments))
        self._running[name] = process

    def send(self, name: str, number: signal.Signals) -> None:
        self._running[name].send_signal(number)

    def go_on(self, name: str) -> None:
        """Have one that was stopped or killed come back."""
        if self._running[name].poll() is None:
            self.send(name, signal.SIGCONT)
        else:
            self.start(name)

    def kill(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].wait()


@contextmanager
def sinks_of(orders: Path, folder: Path, *options: str) -> Generator[Sinks]:
    """Run a source of the orders with these options, and the sinks ``b`` and ``c``."""
    port = free_port()
    with ExitStack() as stack:
        where = ("--listen", f"127.0.0.1:{port}")
        source = stack.enter_context(started("replicate", "source", orders, *where, *options))
        assert source.stdout is not None
        assert source.stdout.readline().startswith(b"listening")
        sinks = Sinks(folder, port, stack)
        for name in "bc":
            sinks.start(name)
        yield sinks


def members(queue: quire.JournalQueue) -> set[str]:
    return {it.name for it in queue.replicas if it.in_sync}


def are(queue: quire.JournalQueue, *names: str) -> Callable[[], bool]:
    return lambda: members(queue) == set(names)


def check_copies(orders: Path, *copies: Path) -> None:
    for copy in copies:
        wait_until(partial(_has_last, copy, last_index(orders)))
        assert messages(copy) == messages(orders)
        assert problems_of(copy) == []


def _has_last(copy: Path, index: int) -> bool:
    return last_index(copy) == index


@AWAY
def test_an_append_waits_until_a_sink_that_is_away_is_dropped(
    number: signal.Signals, orders: Path, tmp_path: Path
) -> None:
    """It ends without the sink; once that is back, it has everything, and counts again."""
    with (
        sinks_of(orders, tmp_path, "--drop-after", "0.05") as sinks,
        quire.open(orders, timeout_s=HANG_S) as queue,
        queue.appender() as appender,
    ):
        wait_until(are(queue, "b", "c"))
        sinks.send("c", number)
        index = appender.write_bytes(b"without c", wait="all")
        assert members(queue) == {"b"}
        assert last_index(sinks.copy("b")) == index > last_index(sinks.copy("c"))
        with pytest.raises(WaitTimeoutError):
            appender.acknowledged(index, wait=2, timeout_s=0.05)
        assert appender.write_bytes(b"nor here", wait="all") > index
        sinks.go_on("c")
        wait_until(are(queue, "b", "c"))
        appender.write_bytes(b"with c", wait=2)
        check_copies(orders, sinks.copy("b"), sinks.copy("c"))


def test_a_sink_that_is_forgotten_while_it_is_connected(orders: Path, tmp_path: Path) -> None:
    """It gets what it lacks, and is a member again once it has connected again."""
    with (
        sinks_of(orders, tmp_path) as sinks,
        quire.open(orders, timeout_s=HANG_S) as queue,
        queue.appender() as appender,
    ):
        wait_until(are(queue, "b", "c"))
        sinks.send("c", signal.SIGSTOP)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(appender.write_bytes, b"without c", wait="all")
            wait_until(lambda: last_index(sinks.copy("b")) == queue.last_index)
            assert not waiting.done()
            ran = run("replicate", "forget", orders, "c")
            assert (ran.code, ran.out, ran.err) == (0, "forgot c\n", "")
            assert waiting.result(HANG_S) > last_index(sinks.copy("c"))
        sinks.send("c", signal.SIGCONT)
        check_copies(orders, sinks.copy("c"))
        assert members(queue) == {"b"}
        sinks.kill("c")
        appender.write_bytes(b"nor here", wait="all")
        sinks.start("c")
        wait_until(are(queue, "b", "c"))
        appender.write_bytes(b"with c", wait=2)
        check_copies(orders, sinks.copy("b"), sinks.copy("c"))


@pytest.mark.parametrize("hours", [1, -1])
def test_a_wall_clock_that_is_set_drops_nobody(
    hours: int, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member is away for as long as it is, whatever the wall clock says."""
    long_s, now_s, now_ns = 1800.0, time.time(), time.time_ns()
    with quire.open(orders) as queue:
        found = InSyncSet(queue, 1, long_s)
        states = ReplicaStates.open_or_create(orders)
        states.set_member(states.slot_of("away", "host:1"), True)  # noqa: FBT003
        found.tick()
        monkeypatch.setattr(time, "time", lambda: now_s + 3600 * hours)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns + 3600 * 10**9 * hours)
        found.tick()
        assert members(queue) == {"away"}
        since_s = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: since_s + long_s)
        found.tick()
        assert members(queue) == set()
        found.close()


def in_sync(cluster: Cluster, *names: str) -> None:
    """Wait until these nodes are the in-sync set in etcd."""
    wait_until(lambda: cluster.view.in_sync == frozenset(names), limit_s=LIMIT_S)


def take_away(cluster: Cluster, name: str, number: signal.Signals) -> None:
    if number == signal.SIGKILL:
        cluster.kill(name)
    else:
        cluster.send(name, number)


def bring_back(cluster: Cluster, name: str, number: signal.Signals) -> None:
    if number == signal.SIGKILL:
        cluster.start(name)
    else:
        cluster.send(name, signal.SIGCONT)


@AWAY
def test_a_node_that_is_away_is_dropped_and_not_elected(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Not even where it is the only one that lives; once it has caught up, it may take over."""
    with cluster_of("abc", tmp_path, options=["--drop-after", "1"]) as cluster:
        cluster.begin()
        take_away(cluster, "c", number)
        with (
            quire.open(cluster.path("a"), timeout_s=LIMIT_S) as queue,
            queue.appender() as appender,
        ):
            index = appender.write_bytes(b"without c", wait="all")
            assert "c" not in cluster.view.in_sync | members(queue)
        assert last_index(cluster.path("b")) >= index > last_index(cluster.path("c"))
        in_sync(cluster, "a", "b")
        cluster.kill("a")
        assert cluster.wait_for_leader(after=1).name == "b"
        in_sync(cluster, "b")
        cluster.kill("b")
        said = len(cluster.output("c"))
        bring_back(cluster, "c", number)
        wait_until(lambda: not cluster.view.leader and "c" in cluster.view.nodes, limit_s=LIMIT_S)
        wait_until(lambda: "waiting" in cluster.output("c")[said:], limit_s=LIMIT_S)
        cluster.start("a")  # nor is this one, which was dropped, too
        wait_until(lambda: {"a", "c"} <= cluster.view.nodes.keys(), limit_s=LIMIT_S)
        assert cluster.view.leader is None
        assert cluster.view.in_sync == frozenset("b")
        cluster.start("b")
        assert cluster.wait_for_leader(after=2).name == "b"
        cluster.wait_in_sync()
        assert not any(it.startswith("source") for it in cluster.output("c"))
        with (
            quire.open(cluster.path("b"), timeout_s=LIMIT_S) as queue,
            queue.appender() as appender,
        ):
            wait_until(are(queue, "a", "c"), limit_s=LIMIT_S)
            appender.write_bytes(b"with c", wait=2)
        check_copies(cluster.path("b"), cluster.path("a"), cluster.path("c"))
        assert index in dict(cluster.payloads("c"))
        ran = run("handover", cluster.path("b"), "--to", "c", timeout_s=LIMIT_S)
        assert ran.code == 0, ran.err
        assert cluster.wait_for_leader(after=3).name == "c"
