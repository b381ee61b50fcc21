"""
Writers and readers of one queue are killed at random instants, thousands of times.

Rounds of so many kills each, on a queue of their own: what the killed calls had returned stands in
a log outside of the queue. A round is repeated by the seed that its failure names:
`QUIRE_STORM_SEED=... pytest tests/attack/test_kill_storm.py`. Its course is the same, its instants
are not.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import quire
import storm_victims as victims
from queues import START_MS
from quire_peer import Message, encode
from reference import check_killed, open_queue, read_queue
from storm_victims import Life, Log, Record
from tally import Tally, limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(1800, 86_400))]

SEED = os.environ.get("QUIRE_STORM_SEED")
DIES_WITHIN_S = 300.0
SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"layout": quire.LayoutOptions(index_count=256)},
    {"layout": quire.LayoutOptions(index_count=256)},
    {"layout": quire.LayoutOptions(index_count=256)},
)
NAMES = (".cq4", ".cq4t", ".discard", "waiting.quire")


@dataclass
class Victim:
    life: Life
    pid: int
    log: Log


class Fate(NamedTuple):
    """What a victim had done: `mark` is what it had begun or, of a reader, committed."""

    life: Life
    mark: int
    records: list[Record]


@dataclass
class Round:
    """One queue under one storm."""

    seed: int
    path: Path
    kills: int
    spacing_s: float
    fresh: bool = False
    fates: list[Fate] = field(default_factory=list[Fate])
    seen: list[Message] = field(default_factory=list[Message])

    def __post_init__(self) -> None:
        rng = self.rng = random.Random(self.seed)  # noqa: S311 - a course that can be repeated
        self.queue_path, self.errors = self.path / "queue", self.path / "errors"
        self.speed = rng.choice([1, 10, 30])
        self.block_bytes = rng.choice([2**16, 2**17, 2**20, 2**24])
        self.started_s = time.monotonic()
        self.epoch_ms = START_MS
        self.born = 0
        new: dict[str, Any] = {"roll_cycle": "TEST_SECONDLY", **rng.choice(SHAPES)}
        with quire.open(self.queue_path, block_bytes=self.block_bytes, **new):
            pass
        roles: list[victims.Role | victims.Reader] = ["tailer", "named"]
        roles += rng.choices(victims.WRITERS, k=rng.randint(1, 3))
        self.alive = [self.start(role) for role in roles]

    def start(self, role: victims.Role | victims.Reader, after: int | None = None) -> Victim:
        """Start another victim."""
        self.born += 1
        life = Life(
            number=self.born,
            role=role,
            seed=self.rng.getrandbits(32),
            queue=str(self.queue_path),
            log=str(self.path / f"{self.born}.log"),
            errors=str(self.errors),
            block_bytes=self.block_bytes,
            epoch_ms=self.epoch_ms,
            started_s=self.started_s,
            speed=self.speed,
            handler=self.rng.choice(victims.HANDLERS),
            resume_after=after,
        )
        log = Log(Path(life.log), new=True)
        return Victim(life, victims.start(life, fresh=self.fresh), log)

    def rage(self) -> None:
        """Kill one after the other, and start the next in its place, while a tailer reads."""
        reader: dict[str, Any] = {
            "read_only": self.rng.random() < 0.5,
            "wait": quire.WaitOptions(eof_grace_s=victims.GRACE_S),
        }
        with (
            quire.open(self.queue_path, format="chronicle", **reader) as queue,
            queue.tailer() as tailer,
        ):
            while len(self.fates) < self.kills:
                time.sleep(self.rng.uniform(0, 2 * self.spacing_s))
                self.seen += map(Message.of_excerpt, islice(tailer, 1000))
                weights = [1 if it.life.role in {"tailer", "named"} else 3 for it in self.alive]
                (number,) = self.rng.choices(range(len(self.alive)), weights)
                if len(self.fates) + len(self.alive) < self.kills:
                    self.replace(number)
                else:
                    self.kill(self.alive.pop(number))
            self.end_of_storm(tailer)

    def replace(self, number: int) -> None:
        victim = self.alive[number]
        self.kill(victim)
        role = victim.life.role
        if role in victims.WRITERS:
            role = self.rng.choice(victims.WRITERS)
        self.alive[number] = self.start(role, self.resume_after(victim))

    def resume_after(self, victim: Victim) -> int | None:
        if victim.life.role != "tailer":
            return None
        records = self.fates[-1].records
        return records[-1].at if records else victim.life.resume_after

    def kill(self, victim: Victim) -> None:
        number = self.rng.choices(
            [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], [0.84, 0.08, 0.08]
        )[0]
        if self.rng.random() < 0.7:
            self.aim(victim.log)
        os.kill(victim.pid, number)
        deadline = time.monotonic() + DIES_WITHIN_S
        while os.waitpid(victim.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(victim.pid, signal.SIGKILL)
                os.waitpid(victim.pid, 0)
                raise AssertionError(f"lives on after {number!r}: {victim.life}")
            time.sleep(0.0002)
        self.fates.append(Fate(victim.life, *victim.log.read()))
        victim.log.close()
        Path(victim.life.log).unlink()

    def aim(self, log: Log) -> None:
        """Wait until the victim begins a call, and a little longer."""
        begun, deadline = log.begun(), time.monotonic() + 0.003
        while log.begun() == begun and time.monotonic() < deadline:
            pass
        strike = time.monotonic() + self.rng.choice([0, 1e-5, 1e-4]) * self.rng.random()
        while time.monotonic() < strike:
            pass

    def end_of_storm(self, tailer: quire.JournalTailer) -> None:
        """Append once more, and read to the end with each tailer."""
        with quire.open(self.queue_path, block_bytes=self.block_bytes) as queue:
            queue.appender().write_bytes(encode(self.born + 1, 0, 50, self.rng))
            deadline = time.monotonic() + DIES_WITHIN_S
            while not self.seen or self.seen[-1].producer != self.born + 1:
                assert time.monotonic() < deadline, (self.seen[-1:], tailer.state)
                self.seen += map(Message.of_excerpt, tailer)
            with queue.tailer(victims.NAME) as named:
                self.add_rest("named", named)
            with queue.tailer() as again:
                delivered = [record for fate in self.of("tailer") for record in fate.records]
                if delivered:
                    assert again.move_to_index(delivered[-1].at)
                    again.read()
                self.add_rest("tailer", again)

    def add_rest(self, role: victims.Reader, tailer: quire.JournalTailer) -> None:
        rest = [Record(victims.mark_of(excerpt.data), excerpt.index) for excerpt in tailer]
        self.fates.append(Fate(replace(self.of(role)[0].life, number=self.born + 1), 0, rest))

    def of(self, *roles: victims.Role | victims.Reader) -> list[Fate]:
        return [fate for fate in self.fates if fate.life.role in roles]

    def clear_away(self) -> None:
        for victim in self.alive:
            os.kill(victim.pid, signal.SIGKILL)
            os.waitpid(victim.pid, 0)

    def verify(self) -> None:
        assert not self.errors.exists(), self.errors.read_text()
        assert [path.name for path in self.path.iterdir()] == ["queue"]
        with quire.open(self.queue_path, read_only=True) as queue:
            final = [*map(Message.of_excerpt, queue.tailer())]
            assert_same(self.seen, final)
            assert_found(queue, final, self.rng)
        self.verify_writers(final)
        self.verify_tailer(final)
        self.verify_named(final)
        self.verify_files(final)

    def verify_writers(self, final: list[Message]) -> None:
        """Acknowledged: there once, at its index. Not acknowledged: what was under way, at most."""
        own: dict[int, list[Message]] = {number: [] for number in range(1, self.born + 2)}
        for message in final:
            own[message.producer].append(message)
        for life, begun, acknowledged in self.of(*victims.WRITERS):
            found = own.pop(life.number)
            assert [message.counter for message in found] == list(range(len(found))), life
            for upto, index in acknowledged:
                assert found[upto - 1].index == index, (life, upto, index)
            assert len(found) <= begun, life
        (last,) = (messages for messages in own.values() if messages)
        assert last == final[-1:]

    def verify_tailer(self, final: list[Message]) -> None:
        """Its lives together have seen everything once: each began behind the one before."""
        delivered = [record for fate in self.of("tailer") for record in fate.records]
        assert delivered == [Record(mark(message), message.index) for message in final]

    def verify_named(self, final: list[Message]) -> None:
        """A life begins behind what was committed, and not behind what was not delivered."""
        places = {mark(message): place for place, message in enumerate(final)}
        committed, delivered = 0, 0
        for life, finished, records in self.of("named"):
            if not records:
                continue
            first = places[records[0].mark]
            assert committed <= first <= delivered, (life, committed, first, delivered)
            found = [places[record.mark] for record in records]
            assert found == list(range(first, first + len(found))), life
            committed, delivered = first + finished, first + len(found)
        assert delivered == len(final)

    def verify_files(self, final: list[Message]) -> None:
        names = [path.name for path in self.queue_path.iterdir()]
        assert all(name.endswith(NAMES) for name in names), names
        expected = [(message.index, mark(message)) for message in final]
        found = [(index, victims.mark_of(data)) for index, data in read_queue(self.queue_path)]
        assert found == expected
        for cycle, store in open_queue(self.queue_path)[1].items():
            assert [*check_killed(store)] == [], cycle


def mark(message: Message) -> int:
    return message.producer << victims.COUNTER_BITS | message.counter


def assert_same(seen: list[Message], final: list[Message]) -> None:
    """As `==`, reported in one line: pytest takes minutes to compare long lists."""
    pairs = enumerate(zip(seen, final, strict=False))
    other = next(((place, *pair) for place, pair in pairs if pair[0] != pair[1]), None)
    assert other is None, other
    assert len(seen) == len(final)


def assert_found(queue: quire.JournalQueue, final: list[Message], rng: random.Random) -> None:
    """Every way to a message leads to it, whatever the killed left of the index."""
    assert queue.entry_count == len(final)
    assert queue.last_index == final[-1].index
    with queue.tailer() as tailer:
        for message in rng.sample(final, min(100, len(final))):
            assert tailer.move_to_index(message.index)
            excerpt = tailer.read()
            assert excerpt is not None
            assert Message.of_excerpt(excerpt) == message
        tailer.direction = "backward"
        tailer.to_end()
        backward = [excerpt.index for excerpt in islice(tailer, 1000)]
    assert backward == [message.index for message in final[: -len(backward) - 1 : -1]]


@dataclass
class Sum:
    """What the rounds did, together."""

    kills: int = 0
    inside_a_call: int = 0
    messages: int = 0
    cycles: int = 0
    repeated: int = 0

    def add(self, storm: Round) -> None:
        """Add a round."""
        self.kills += storm.kills
        self.inside_a_call += sum(
            fate.mark > (fate.records[-1].mark if fate.records else 0)
            for fate in storm.of(*victims.WRITERS)
        )
        self.messages += len(storm.seen)
        self.cycles += len([*storm.queue_path.glob("*.cq4")])
        delivered = sum(len(fate.records) for fate in storm.of("named"))
        self.repeated += delivered - len(storm.seen)


def storm(tmp_path: Path, rounds: int, *, kills: int, spacing_s: float, fresh: bool = False) -> Sum:
    """Let so many rounds rage, verify each, and add them up."""
    total = Sum()
    seed = random.SystemRandom().getrandbits(32)
    for number in range(1 if SEED else rounds):
        path = tmp_path / str(number)
        path.mkdir()
        now = Round(int(SEED) if SEED else seed + number, path, kills, spacing_s, fresh)
        try:
            now.rage()
            now.verify()
        except BaseException as error:
            error.add_note(f"QUIRE_STORM_SEED={now.seed} path={path}")
            raise
        finally:
            now.clear_away()
        total.add(now)
        shutil.rmtree(path)
    return total


PROMISE = "Killed processes lose nothing acknowledged, and what they left is repaired."


def test_a_storm_of_kills_loses_nothing(tmp_path: Path, tally: Tally) -> None:
    total = storm(tmp_path, scaled(12, 2500), kills=40, spacing_s=0.006)
    tally(PROMISE, total.kills, "kills of forked writers and readers")
    tally(PROMISE, total.inside_a_call, "writers killed inside a call")
    tally(PROMISE, total.messages, "messages between kills")
    tally(PROMISE, total.cycles, "roll files between kills")
    tally(PROMISE, total.repeated, "messages a named tailer was given again")


def test_a_storm_of_kills_of_whole_interpreters_loses_nothing(tmp_path: Path, tally: Tally) -> None:
    total = storm(tmp_path, scaled(2, 40), kills=25, spacing_s=0.04, fresh=True)
    tally(PROMISE, total.kills, "kills of interpreters that had just started")
