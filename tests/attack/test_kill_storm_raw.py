"""
Writers of the two older formats are killed at random instants, while a tailer reads.

A round is repeated by the seed that its failure names:
`QUIRE_STORM_SEED=... pytest tests/attack/test_kill_storm_raw.py -k ...`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import raw_victims
import vanilla_reference
from queues import exit_code
from quick_reference import QuickReference
from quire_peer import Message, encode
from raw_victims import FORMS, Form, Victim, open_queue
from storm_victims import Log, Record
from tally import Tally, limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 86_400))]

SEED = os.environ.get("QUIRE_STORM_SEED")
KILLS = 20
SPACING_S = 0.02
OPTIONS: dict[Form, list[dict[str, Any]]] = {
    "vanilla": [
        {
            "roll_cycle": "SECONDS",
            "index_block_bytes": 4096,
            "data_block_bytes": size,
            "tid_bits": 22,
            "linger_s": 86_400,
        }
        for size in (4096, 65_536)
    ],
    "single": [{"page_bytes": size} for size in (256, 4096, 2**20)],
    "named": [{"page_bytes": size} for size in (256, 4096, 2**20)],
}
NAMES = ("AA0", "BB1", "CC2")


class Fate(NamedTuple):
    """What a lane had done when it was killed."""

    begun: int
    records: list[Record]


class Running(NamedTuple):
    """A victim that lives."""

    pid: int
    victim: Victim
    logs: dict[int, Log]


@dataclass
class Round:
    """One queue under one storm."""

    form: Form
    seed: int
    path: Path
    born: int = 0
    kills: int = 0
    fates: dict[int, Fate] = field(default_factory=dict[int, Fate])
    alive: list[Running] = field(default_factory=list[Running])
    seen: list[Message] = field(default_factory=list[Message])

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)  # noqa: S311 - a course that can be repeated
        self.queue_path, self.logs = self.path / "queue", self.path / "logs"
        self.logs.mkdir()
        self.options = self.rng.choice(OPTIONS[self.form])
        self.open().close()

    def open(self, **options: Any) -> Any:  # noqa: ANN401
        return open_queue(self.form, self.queue_path, self.options | options)

    def start(self, producer: str | None) -> None:
        threads = self.rng.choice([1, 2, 3]) if self.form == "vanilla" else 1
        lanes = tuple(range(self.born + 1, self.born + 1 + threads))
        self.born += threads
        seed = self.rng.getrandbits(32)
        victim = Victim(self.form, self.queue_path, lanes, self.logs, seed, self.options, producer)
        pid, logs = raw_victims.start(victim)
        self.alive.append(Running(pid, victim, logs))

    def rage(self) -> None:
        """Kill one after the other, and start the next in its place."""
        names: dict[Form, tuple[str | None, ...]]
        names = {"vanilla": (None, None), "single": (None,), "named": NAMES}
        for name in names[self.form]:
            self.start(name)
        with self.open(read_only=True) as queue, self.tailer(queue) as tailer:
            while self.kills < KILLS:
                time.sleep(self.rng.uniform(0, 2 * SPACING_S))
                self.read_on(tailer)
                number = self.rng.randrange(len(self.alive))
                self.wait_for_work(number)
                self.start(self.kill(number))
            while self.alive:
                self.kill(0)
            self.append_once_more()
            self.read_on(tailer)

    def tailer(self, queue: Any) -> Any:  # noqa: ANN401
        """An entry that is passed over would be a message that is lost."""
        return queue.tailer() if self.form == "vanilla" else queue.tailer(on_dead="raise")

    def read_on(self, tailer: Any) -> None:  # noqa: ANN401
        self.seen += map(Message.of_excerpt, tailer)

    def wait_for_work(self, number: int) -> None:
        """Let every other victim begin to write; the rest may die while they open the queue."""
        logs = self.alive[number].logs.values()
        is_patient = self.rng.random() < 0.5
        while is_patient and not any(log.begun() for log in logs):
            self.check_errors()
            time.sleep(0.001)

    def kill(self, number: int) -> str | None:
        pid, victim, logs = self.alive.pop(number)
        os.kill(pid, signal.SIGKILL)
        code = exit_code(pid)
        self.check_errors()
        assert code == -signal.SIGKILL, victim
        for lane, log in logs.items():
            self.fates[lane] = Fate(*log.read())
            log.close()
        self.kills += 1
        return victim.producer

    def append_once_more(self) -> None:
        """Each name writes again, which completes what its last process left."""
        with self.open() as queue:
            for name in NAMES if self.form == "named" else (None,):
                self.born += 1
                appender = queue.appender() if name is None else queue.appender(name)
                index = appender.write_bytes(encode(self.born, 0, 50, self.rng))
                self.fates[self.born] = Fate(1, [Record(1, index)])
                appender.close()

    def clear_away(self) -> None:
        for pid, _, _ in self.alive:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def check_errors(self) -> None:
        errors = self.logs / "errors"
        assert not errors.exists(), errors.read_text()

    def verify(self) -> None:
        self.check_errors()
        with self.open(read_only=True) as queue, self.tailer(queue) as tailer:
            final = [*map(Message.of_excerpt, tailer)]
            assert queue.entry_count == len(final)
            assert queue.last_index == final[-1].index
            for message in self.rng.sample(final, min(100, len(final))):
                assert tailer.move_to_index(message.index)
                assert Message.of_excerpt(tailer.read()) == message
        assert [it.index for it in final] == sorted({it.index for it in final})
        # Late messages of a slow writer are delivered after newer ones.
        assert sorted(self.seen, key=lambda it: it.index) == final
        assert self.form == "vanilla" or self.seen == final
        self.verify_lanes(final)
        found = [Message.of_payload(*it) for it in self.reference()]
        assert found == final

    def verify_lanes(self, final: list[Message]) -> None:
        """Acknowledged: there once, at its index. Not acknowledged: what was under way, at most."""
        own: dict[int, list[Message]] = {lane: [] for lane in self.fates}
        for message in final:
            own[message.producer].append(message)
        for lane, (begun, records) in self.fates.items():
            found = own[lane]
            assert [message.counter for message in found] == [*range(len(found))], lane
            for upto, index in records:
                assert found[upto - 1].index == index, (lane, upto, index)
            assert len(found) <= begun, lane

    def reference(self) -> list[tuple[int, bytes]]:
        """All messages, by the reader that was written from the page alone."""
        if self.form != "vanilla":
            return [(at, data) for at, _, data in QuickReference(self.queue_path).messages()]
        with self.open(read_only=True) as queue:
            cycles = {cycle: Path(queue.directory_for_cycle(cycle)) for cycle in queue.cycles}
        options = self.options
        blocks = (options["index_block_bytes"], options["data_block_bytes"])
        geometry = vanilla_reference.Geometry(options["tid_bits"], *blocks, sequence_bits=28)
        found: list[tuple[int, bytes]] = []
        for cycle, folder in sorted(cycles.items()):
            found += vanilla_reference.messages(folder, cycle, geometry)
        return found


PROMISE = "Killed processes lose nothing acknowledged, and what they left is repaired."


@pytest.mark.parametrize("form", FORMS)
def test_a_storm_of_kills_loses_nothing(form: Form, tmp_path: Path, tally: Tally) -> None:
    seed = int(SEED) if SEED else random.SystemRandom().getrandbits(32)
    kills = inside_a_call = messages = 0
    for number in range(1 if SEED else scaled(1, 50)):
        path = tmp_path / str(number)
        path.mkdir()
        storm = Round(form, seed + number, path)
        try:
            storm.rage()
            storm.verify()
        except BaseException as error:
            error.add_note(f"QUIRE_STORM_SEED={storm.seed} path={path}")
            raise
        finally:
            storm.clear_away()
        kills += storm.kills
        inside_a_call += sum(
            fate.begun > (fate.records[-1].mark if fate.records else 0)
            for fate in storm.fates.values()
        )
        messages += len(storm.seen)
        shutil.rmtree(path)
    tally(PROMISE, kills, f"kills of writers ({form})")
    tally(PROMISE, inside_a_call, f"writers killed inside a call ({form})")
    tally(PROMISE, messages, f"messages between kills ({form})")
