"""Three services in a row, killed at random: their output is that of a run in peace."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

import quire
import service_peer
from service_peer import STAGES, Orders
from tally import Tally

KILLS = 24
ORDERS = 1_000  # before each kill
MORE_MAX = 400  # outputs until it comes; each service writes more for so many orders


def feed(directory: Path, start: int, count: int) -> None:
    with quire.open(directory / "0") as queue, queue.appender() as appender:
        orders = appender.method_writer(Orders)
        for number in range(start, start + count):
            orders.order(number, number * 7919 % 1000)


def documents(directory: Path, stage: int) -> list[tuple[tuple[tuple[int, int], ...], bytes]]:
    """What a queue holds: of each message the inputs that led to it, and its call."""
    found: list[tuple[tuple[tuple[int, int], ...], bytes]] = []
    with quire.open(directory / str(stage)) as queue, queue.tailer() as tailer:
        while True:
            with tailer.reading_document() as document:
                if not document.is_present:
                    return found
                history = document.history
                assert history is not None
                assert len(history.timings) == 2 * stage + 1
                sources = tuple(
                    (source, queue.roll_cycle.to_sequence(index))
                    for source, index in history.sources
                )
                found.append((sources, call_of(bytes(document.bytes))))


def call_of(payload: bytes) -> bytes:
    """What is behind the packed history."""
    assert payload.startswith(b"\xba\x80\x00\x81")
    return payload[6 + int.from_bytes(payload[4:6], "little") :]


def in_peace(directory: Path) -> None:
    for stage in range(len(STAGES)):
        with service_peer.service(directory, stage) as service:
            while service.run_once():
                pass


def written(directory: Path, stage: int) -> int:
    """How many outputs a service has written."""
    with quire.open(directory / str(stage + 1), read_only=True) as queue:
        return queue.entry_count


def kill_at(directory: Path, stage: int, victim: subprocess.Popen[bytes], wanted: int) -> int:
    """Kill a service once there are `wanted` outputs, and return how many there are then."""
    deadline_s = time.monotonic() + 300
    with quire.open(directory / str(stage + 1), read_only=True) as queue:
        while queue.entry_count < wanted:
            assert time.monotonic() < deadline_s, f"{stage}: {queue.entry_count} of {wanted}"
            assert victim.poll() is None
        victim.kill()
        victim.wait()
        return queue.entry_count


@pytest.mark.slow
def test_killed_at_random_they_write_what_they_write_in_peace(tmp_path: Path, tally: Tally) -> None:
    chance = random.Random(5)  # noqa: S311 - repeatable
    peace, storm = tmp_path / "peace", tmp_path / "storm"
    for directory in (peace, storm):
        service_peer.create(directory)
    feed(peace, 0, KILLS * ORDERS)
    in_peace(peace)
    wanted = [documents(peace, stage) for stage in range(1, len(STAGES) + 1)]

    running: list[subprocess.Popen[bytes]] = []
    try:
        running += [service_peer.start(storm, stage) for stage in range(len(STAGES))]
        at_work = 0
        for kill in range(KILLS):
            stage = chance.randrange(len(STAGES))
            # Counted before the orders: a fast service may be through with them at once.
            goal = written(storm, stage) + chance.randrange(1, MORE_MAX)
            feed(storm, kill * ORDERS, ORDERS)
            fed = (kill + 1) * ORDERS
            left = kill_at(storm, stage, running[stage], goal)
            at_work += left < sum(sources[0][1] < fed for sources, _ in wanted[stage])
            running[stage] = service_peer.start(storm, stage)
        assert at_work
        deadline_s = time.monotonic() + 300
        with quire.open(storm / "3", read_only=True) as queue:
            while queue.entry_count < len(wanted[-1]):
                assert time.monotonic() < deadline_s, f"{queue.entry_count} of {len(wanted[-1])}"
                assert all(one.poll() is None for one in running)
                time.sleep(0.05)
        time.sleep(0.2)  # nothing more comes
    finally:
        for one in running:
            one.kill()
            one.wait()

    for stage in range(len(STAGES)):
        assert documents(storm, stage + 1) == wanted[stage]
    tally(
        "A service between queues handles each message once, whenever it is killed",
        KILLS,
        "kills of one of three services in a row",
    )
