"""
Consumers of a group are killed at random instants, while others work.

A storm is repeated by the seed that its failure names:
`QUIRE_STORM_SEED=... pytest tests/attack/test_group_storm.py -k ...`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import group_victim
import quire
from paths import SUPPORT
from tally import Tally, limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

KILLS = scaled(10, 500)  # in each mode
VICTIMS = 3
AT_ONCE = 50
PATIENCE_S = 120.0


@dataclass
class Storm:
    """One queue, its consumers, and what they wrote."""

    path: Path
    logs: Path
    mode: str
    seed: int
    written: int = 0
    started: int = 0
    alive: list[tuple[subprocess.Popen[bytes], Path]] = field(
        default_factory=list[tuple[subprocess.Popen[bytes], Path]]
    )

    def start(self) -> None:
        self.started += 1
        log = self.logs / f"{self.started}.log"
        log.touch()
        command = [sys.executable, group_victim.__file__, str(self.path), str(log)]
        command += [str(self.seed + self.started), self.mode]
        environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
        self.alive.append((subprocess.Popen(command, env=environment), log))

    def kill_one(self, appender: quire.JournalAppender, rng: random.Random) -> None:
        """Kill a consumer after a few more lines of its log, at any place of its work."""
        victim = rng.choice(self.alive)
        process, log = victim
        wanted = log.stat().st_size + rng.randrange(1, 4000)
        deadline = time.monotonic() + PATIENCE_S
        while log.stat().st_size < wanted:
            assert process.poll() is None, f"a consumer failed: seed={self.seed}"
            assert time.monotonic() < deadline, f"a consumer is stuck: seed={self.seed}"
            if self.lag < AT_ONCE:
                self.append(appender)
        process.kill()
        process.wait()
        self.alive.remove(victim)

    @property
    def lag(self) -> int:
        with quire.open(self.path, read_only=True) as queue:
            return queue.group("storm").lag

    def append(self, appender: quire.JournalAppender) -> None:
        for number in range(self.written, self.written + AT_ONCE):
            appender.write_map({"key": number % group_victim.KEYS, "number": number})
        self.written += AT_ONCE

    def lines(self) -> list[list[str]]:
        """What all consumers wrote; a line that a kill cut short was not written."""
        logs = sorted(self.logs.glob("*.log"))
        whole = [line for log in logs for line in log.read_text().split("\n")[:-1]]
        return [line.split() for line in whole]


@pytest.mark.parametrize("mode", ["plain", group_victim.KEYED])
def test_nothing_is_lost_nor_delivered_twice_without_saying_so(
    tmp_path: Path, mode: str, tally: Tally
) -> None:
    seed = int(os.environ.get("QUIRE_STORM_SEED") or int.from_bytes(os.urandom(4)))
    print(f"QUIRE_STORM_SEED={seed}")  # noqa: T201 - shown when it fails
    rng = random.Random(seed)  # noqa: S311 - repeatable
    storm = Storm(tmp_path / "queue", tmp_path, mode, seed)
    with quire.open(storm.path) as queue, queue.appender() as appender:
        storm.append(appender)
        try:
            for _ in range(VICTIMS):
                storm.start()
            for _ in range(KILLS):
                storm.kill_one(appender, rng)
                storm.start()
        finally:
            for process, _ in storm.alive:
                process.kill()
                process.wait()
        rest = drain(queue, mode)
        assert queue.group("storm").lag == 0
        indexes = [excerpt.index for excerpt in queue.tailer()]

    check(storm, indexes, rest)
    tally(
        "Killed consumers lose nothing, and what comes again says so",
        KILLS,
        "kills of consumers",
    )


def drain(queue: quire.JournalQueue, mode: str) -> dict[int, int]:
    """Acknowledge what is left; return the delivery count of each message."""
    with group_victim.group_of(queue, mode).consumer() as consumer:
        rest: dict[int, int] = {}
        for message in consumer:
            assert message.index not in rest
            rest[message.index] = message.delivery_count
            assert message.ack()
    return rest


def check(storm: Storm, indexes: list[int], rest: dict[int, int]) -> None:
    lines = storm.lines()
    first = Counter(int(line[1]) for line in lines if line[0] == "D" and line[2] == "1")
    first.update(index for index, count in rest.items() if count == 1)
    acknowledged = Counter(int(line[1]) for line in lines if line[0] == "A")
    acknowledged.update([*rest])  # a mapping's values would be added
    begun = {int(line[1]) for line in lines if line[0] == "B"}

    assert len(indexes) == storm.written
    assert not [index for index, count in first.items() if count > 1], f"seed={storm.seed}"
    assert not [index for index, count in acknowledged.items() if count > 1], f"seed={storm.seed}"
    lost = {*indexes} - {*acknowledged} - begun
    assert not lost, f"seed={storm.seed}"
    if storm.mode == group_victim.KEYED:
        check_order(lines, indexes, storm.seed)


def check_order(lines: list[list[str]], indexes: list[int], seed: int) -> None:
    """A message is delivered after the one before of its key began to be acknowledged."""
    delivered: dict[int, list[int]] = {}
    begun: dict[int, list[int]] = {}
    for kind, message, *rest in lines:
        if kind == "D":
            delivered.setdefault(int(message), []).append(int(rest[1]))
        elif kind == "B":
            begun.setdefault(int(message), []).append(int(rest[0]))
    for before, index in zip(indexes, indexes[group_victim.KEYS :], strict=False):
        if index in delivered:
            assert before in begun, f"seed={seed}"
            assert max(begun[before]) < min(delivered[index]), f"seed={seed}"
