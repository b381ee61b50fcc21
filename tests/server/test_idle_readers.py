"""A server with clients that read no more, and what other processes do with its queues."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.server import served_queue
from served import connected, serving_here


def remembered(client: Any) -> None:  # noqa: ANN401
    ((_, ((first, _),)),) = client.xread({"q": "0"}, count=1)
    client.xread({"q": first}, count=1)


def test_cycles_that_clients_have_read_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_queue, "_KEPT_S", 0.0)
    path, clock = tmp_path / "queues" / "q", quire.ManualClock(1_705_314_600_000)
    made = quire.open(path, roll_cycle="TEST_SECONDLY", clock=clock)
    with made as queue, queue.appender() as appender:
        for _ in range(3):
            appender.write_many([b"message"] * 3)
            clock.advance(1000)
    with serving_here(tmp_path / "queues") as port, connected(port) as client:
        remembered(client)
        files = sorted(path.glob("*.cq4"))
        ends = time.monotonic() + 60
        while len(files) > 1 and time.monotonic() < ends:
            quire.prune(path, max_cycles=1)
            files = sorted(path.glob("*.cq4"))
        assert len(files) == 1
