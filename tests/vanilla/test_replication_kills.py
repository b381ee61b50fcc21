"""Sources and sinks that are killed while messages come: the copy gets there all the same."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from any_format import open_vanilla
from paths import SUPPORT
from ports import free_port
from replicas import wait_until
from replication_wire import CAPTURED_MS, SMALL, WAIT_S, contents


class Peer:
    """A source or a sink in a process of its own."""

    def __init__(self, kind: str, path: Path, port: int) -> None:
        command = [sys.executable, str(SUPPORT / "replication_peer.py"), kind, str(path), str(port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def last_index(path: Path) -> int:
    with quire.open(path, format="vanilla", read_only=True) as copy:
        found: int | None = copy.last_index
        return -1 if found is None else found


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["sink", "source", "both"])
def test_a_killed_peer_resumes_without_gap_or_repeat(victim: str, tmp_path: Path) -> None:
    chance = random.Random(victim)  # noqa: S311
    clock, copy = quire.ManualClock(CAPTURED_MS), tmp_path / "copy"
    with open_vanilla(tmp_path / "source", clock=clock, **SMALL) as queue:
        last = queue.appender().write_bytes(b"first")
        source = Peer("source", tmp_path / "source", free_port())
        sink = Peer("sink", copy, source.port)
        with queue.appender() as appender:
            for number in range(6):
                # Killed with messages under way: at least one of these was copied, seldom all.
                wanted = appender.write_bytes(b"%d" % number)
                for size in range(400):
                    last = appender.write_bytes(bytes(chance.randrange(size + 1)))
                wait_until(lambda: last_index(copy) >= wanted, limit_s=WAIT_S)  # noqa: B023 - called at once
                if victim in {"sink", "both"}:
                    sink.kill()
                if victim in {"source", "both"}:
                    source.kill()
                    source = Peer("source", tmp_path / "source", source.port)
                if victim in {"sink", "both"}:
                    sink = Peer("sink", copy, source.port)
        wait_until(lambda: last_index(copy) >= last, limit_s=WAIT_S)
        sink.kill()
        source.kill()
        with quire.open(copy, format="vanilla", read_only=True) as found:
            assert contents(found) == contents(queue)
