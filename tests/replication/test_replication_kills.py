"""Sources and sinks that are killed and stopped while messages come: the copy gets there."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import quire
from cutting_proxy import CuttingProxy
from java_peer import JavaPeer, JavaPeerError, JavaProcess
from paths import SUPPORT
from ports import free_port
from queues import problems_of
from quire.errors import AppendLockedError
from quire_peer import start
from replicas import last_index, wait_until
from tally import RUN, Tally, scaled

PROMISE = "A copy has every message that its sink acknowledged, and gets every other"
WAIT_S = 120.0
ROLL_CYCLE = "TEST_SECONDLY"


def peer(kind: str, path: Path, port: int) -> JavaProcess:
    """Start a source or a sink, and return when it runs."""
    script = str(SUPPORT / "replication_victim.py")
    process = JavaProcess([sys.executable, script, kind, str(path), str(port)])
    process.expect(f"READY {port}")
    return process


def documents(path: Path) -> list[tuple[int, bytes]]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [(it.index, it.data) for it in tailer]


def acknowledged(lines: list[str]) -> int:
    return max((int(line, 16) for line in lines), default=-1)


def pause(process: JavaProcess, chance: random.Random) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(chance.uniform(0, 0.05))
    os.kill(process.pid, signal.SIGCONT)


def said_by(process: JavaProcess) -> list[str]:
    """Return the lines that have come by now."""
    lines = list[str]()
    with suppress(JavaPeerError):
        while (line := process.read_line(0)) is not None:
            lines.append(line)
    return lines


@pytest.mark.check
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_peer_goes_on_where_it_was(seed: int, tmp_path: Path, tally: Tally) -> None:
    """What `wait="all"` reported is in the copy, whatever is killed, stopped or cut off."""
    chance, kills = random.Random(seed + 2 * RUN), scaled(10, 500)  # noqa: S311
    origin, copy, port = tmp_path / "source", tmp_path / "copy", free_port()
    with quire.open(origin, roll_cycle=ROLL_CYCLE, block_bytes=1 << 16) as queue:
        queue.appender().write_bytes(b"\0" * 16)
    with ExitStack() as stack:
        source, proxy = peer("source", origin, port), stack.enter_context(CuttingProxy(port))
        sink = peer("sink", copy, proxy.port)
        stack.callback(lambda: source.close())  # noqa: PLW0108 - the one that runs then
        stack.callback(lambda: sink.close())  # noqa: PLW0108
        waits: dict[str, Any] = {"wait": "all", "timeout_s": WAIT_S, "ack": True}
        sizes: dict[str, Any] = {"count": 10**9, "pause_us": 200, "max_length": 4000}
        producer = stack.enter_context(start("produce", dir=origin, id=seed, **waits, **sizes))
        producer.expect("READY")
        for _ in range(kills):
            time.sleep(chance.uniform(0, 0.1))
            wanted = last_index(origin)
            kind = chance.choice(["sink", "source", "both", "pause", "cut"])
            if kind in {"source", "both"}:
                source.kill()
            if kind in {"sink", "both"}:
                sink.kill()
            if kind == "cut":
                proxy.cut()
            if kind == "pause":
                pause(chance.choice([source, sink]), chance)
            reported = [line.split()[0] for line in said_by(producer)]
            assert last_index(copy) >= acknowledged(reported)
            if kind in {"source", "both"}:
                assert last_index(copy) >= acknowledged(source.rest())
                source = replaced(source, "source", origin, port)
            if kind in {"sink", "both"}:
                sink = replaced(sink, "sink", copy, proxy.port)
            wait_until(lambda: last_index(copy) >= wanted)  # noqa: B023 - called at once
        producer.kill()
        last = last_index(origin)
        wait_until(lambda: last_index(copy) >= last)
    assert documents(copy) == documents(origin)
    assert problems_of(copy) == []
    tally(PROMISE, kills, "sources and sinks killed, stopped or cut off")


def replaced(killed: JavaProcess, kind: str, path: Path, port: int) -> JavaProcess:
    killed.close()
    return peer(kind, path, port)


@pytest.mark.java
def test_java_appends_at_the_source_and_tails_the_copy(tmp_path: Path) -> None:
    origin, copy, port, count = tmp_path / "source", tmp_path / "copy", free_port(), 3000
    java = JavaPeer()
    with quire.open(origin, roll_cycle=ROLL_CYCLE, block_bytes=1 << 16):
        pass
    with (
        peer("source", origin, port),
        peer("sink", copy, port),
        java.start(
            "produce", dir=origin, roll_cycle=ROLL_CYCLE, id=7, count=count, ack=True
        ) as producer,
    ):
        producer.expect("READY")
        wait_until(lambda: last_index(copy) >= 0)
        with java.start("follow", dir=copy, count=count, limit_ms=100_000) as follower:
            follower.expect("READY")
            written = [line.split()[0] for line in producer.read_until("DONE", WAIT_S)]
            read = [line.split()[0] for line in follower.read_until("DONE", WAIT_S)]
        assert read == written
        with pytest.raises(AppendLockedError):
            quire.open(copy).appender().write_bytes(b"not here")
        with java.start("produce", dir=copy, id=8, count=1, ack=True) as refused:
            assert refused.wait() != 0
            assert "IllegalStateException" in refused.stderr_text
    assert documents(copy) == documents(origin)
