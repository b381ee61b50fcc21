"""Meetings of two parties at a queue (`meeting_life.py`), and what must hold after each."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import quire
from any_format import open_vanilla
from meeting_parties import (
    CYCLES,
    EACH,
    FAMILIES,
    GROUP,
    HELD,
    LAST,
    QUICK_BYTES,
    SECOND_MS,
    TAILER,
    VANILLA,
    VANILLA_MS,
    open_queue,
)
from paths import ROOT, SUPPORT
from queues import START_MS
from reference import Store, check_store, is_ready

BUILD = ROOT / "build" / "faults"
TEXT = re.compile(rb"(?:old|first|other) \d+ ")
CHANGES = re.compile(r"\.(?:cas|store|add|publish|rename|remove|link|grow|reserve|clear)$|^audit:")
POLLED = 4  # a step that comes more often than this may depend on time


@dataclass(frozen=True)
class Combination:
    """A party that stops at a step, and the one that runs meanwhile."""

    family: str
    first: str
    other: str
    point: str
    nth: int
    side: str
    beside: bool = False

    def __str__(self) -> str:
        """Return it as it is asked for."""
        where = f"{self.first} {self.side} {self.point}:{self.nth}"
        return f"{self.family}: {where} x {self.other}{' beside' * self.beside}"


@dataclass(frozen=True)
class Met:
    """What came of a meeting."""

    first: dict[str, Any]
    other: dict[str, Any] | None
    reached: bool
    waited: bool

    @property
    def said(self) -> list[list[Any]]:
        parties = [self.first, *([self.other] if self.other else [])]
        return [line for party in parties for line in party["said"]]

    def of(self, word: str) -> list[list[Any]]:
        return [rest for what, *rest in self.said if what == word]


class Meetings:
    """A process of the build with fault points, which forks the parties of each meeting."""

    def __init__(self, directory: Path, unmended: str = "") -> None:
        if not BUILD.is_dir():
            raise RuntimeError("the build with fault points is missing: run `make check` once")
        self.directory = directory
        self._made = 0
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SUPPORT / "meeting_life.py")],
            env=os.environ | {"PYTHONPATH": str(BUILD), "QUIRE_UNMENDED": unmended},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name in FAMILIES:
            made = self._ask(make=name, path=str(directory / name))
            assert made == {"exit": 0, "hangs": False, "said": []}, made

    def _ask(self, **asked: object) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer

    def hits(self, family: str, first: str, *, beside: bool = False) -> dict[str, int]:
        """Count how often a party comes past each step when it is alone."""
        alone = Combination(family, first, "", "", 1, "before", beside)
        with ExitStack() as stack:
            met = self._meet(alone, stack)[1]
        assert not met.of("failed"), met.of("failed")
        return {name: count for name, count in met.of("hits")[0][0].items() if count}

    def check(self, asked: Combination) -> Met:
        """Have two parties meet, and check what they leave."""
        with ExitStack() as stack:
            path, met = self._meet(asked, stack)
            for name, party in (("first", met.first), ("other", met.other)):
                assert party is not None
                assert not party["hangs"], f"the {name} party hangs: {party['said']}"
                assert party["exit"] == 0, f"the {name} party ended with {party['exit']}"
            assert not met.of("failed"), met.of("failed")[0][0]
            CHECKS.get(asked.family, check_chronicle)(path, met)
        return met

    def _meet(self, asked: Combination, stack: ExitStack) -> tuple[Path, Met]:
        self._made += 1
        directory = self.directory / f"meeting-{self._made}"
        directory.mkdir()
        stack.callback(shutil.rmtree, directory)
        path = directory / "queue"
        made = {"from": str(self.directory / asked.family), "path": str(path)}
        return path, Met(**self._ask(**(asked.__dict__ | made)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.kill()
        self._process.wait()


# Which meetings there are.

Pair: TypeAlias = tuple[str, str, str, bool]
"""The family, both parties, and whether they are threads of one process."""


def pairs() -> list[Pair]:
    """Return all pairs of parties that meet."""
    return [
        (name, first, other, beside)
        for name, family in FAMILIES.items()
        for beside, others in ((False, family.others), (True, family.beside))
        for first in family.firsts.split()
        for other in others.split()
    ]


def moments(hits: dict[str, int]) -> Iterator[tuple[str, int, str]]:
    for point, count in hits.items():
        for nth in sorted({1, count} if count <= POLLED else {1, 2}):
            for side in ("before",) if point.startswith("audit:") else ("before", "after"):
                yield point, nth, side


def sampled(meetings: Meetings, chosen: Iterable[Pair]) -> list[Combination]:
    """Return one meeting of each pair: steps that change something are chosen more often."""
    known = dict[tuple[str, str, bool], dict[str, int]]()
    found: list[Combination] = []
    for family, first, other, beside in chosen:
        key = (family, first, beside)
        if key not in known:
            known[key] = meetings.hits(family, first, beside=beside)
        rng = random.Random(f"{family} {first} {other} {beside}")  # noqa: S311 - to be repeated
        choices = list(moments(known[key]))
        weights = [4 if CHANGES.search(point) else 1 for point, _, _ in choices]
        moment = rng.choices(choices, weights)[0]
        found.append(Combination(family, first, other, *moment, beside))
    return found


def every(meetings: Meetings, chosen: Iterable[Pair]) -> Iterator[Combination]:
    """Return all meetings of these pairs."""
    for family, first, other, beside in chosen:
        for moment in moments(meetings.hits(family, first, beside=beside)):
            yield Combination(family, first, other, *moment, beside)


# What must hold.


def text_of(data: bytes) -> str:
    found = TEXT.search(data)
    assert found is not None, data
    return found[0].decode()


def acknowledged(met: Met) -> dict[int, str]:
    """Return what both were told that it is there, by its index."""
    words = ("ack", "batch", "wired")
    return {rest[0]: rest[1] for what, *rest in met.said if what in words}


def check_messages(found: list[tuple[int, str]], met: Met, old: int, excused: set[int]) -> None:
    """Everything acknowledged is there once, at its index, in its order; nothing was invented."""
    texts = Counter(text for _, text in found)
    assert max(texts.values(), default=1) == 1, f"twice: {texts.most_common(3)}"
    begun = {f"old {number} " for number in range(old)} | {it[0] for it in met.of("begin")}
    assert texts.keys() <= begun, f"invented: {texts.keys() - begun}"
    by_index = dict(found)
    assert [*by_index] == sorted(by_index), "out of order"
    lost = {at: text for at, text in acknowledged(met).items() if by_index.get(at) != text}
    assert not lost, f"acknowledged, and not there: {lost}"
    assert {text for (text,) in met.of("put")} <= texts.keys(), "put into the ring, and lost"
    gone = [n for n in range(old) if f"old {n} " not in texts and n not in excused]
    assert not gone, f"old messages are lost: {gone}"
    for party in (met.first, met.other):
        own = [
            text
            for what, *rest in (party or {"said": []})["said"]
            if what == "begin"
            for text in rest
        ]
        places = [text for _, text in found if text in {*own}]
        assert places == [text for text in own if text in {*places}], "in another order"


def check_chronicle(path: Path, met: Met) -> None:
    drain(path)
    check_format(path)
    with open_queue(path, quire.ManualClock(START_MS), read_only=True) as queue:
        found = [(it.index, text_of(it.data)) for it in queue.tailer()]
        cycle_of = queue.roll_cycle.to_cycle
        first_cycle = START_MS // SECOND_MS
    old = len(old_numbers()) if has_old(found) else 0
    excused = {number for number in old_numbers() if is_removed(number, met)}
    check_messages(found, met, old, excused)
    for (held,) in met.of("holds"):
        due = cycle_of(held) - first_cycle
        lost = {number // EACH for number in excused if number // EACH >= due}
        # One may go where the last look and the removal are what the party stood between.
        assert len(lost) <= 1, f"removed although somebody holds them: cycles {sorted(lost)}"
    for indexes, backward in met.of("saw"):
        if backward is not None:
            seen = [indexes, backward[::-1]]
            if met.of("removed"):
                # A cycle may go before the way back, or be out of the listing and still there.
                seen = of_one_length(*seen)
            assert seen[0] == seen[1], "forward and backward differ"
        assert all(one < other for one, other in pairwise(indexes)), "read out of order"
    check_delivery(path, met, found)
    for (copied,) in met.of("copied"):
        check_copy(Path(copied), met, excused)
    findings = [(it.kind, it.file) for it in quire.verify(path).findings]
    assert not findings, f"verify: {findings}"
    check_next_append(path, found)


def of_one_length(one: list[int], other: list[int]) -> list[list[int]]:
    length = min(len(one), len(other))
    return [one[len(one) - length :], other[len(other) - length :]]


def old_numbers() -> range:
    return range(CYCLES * EACH + LAST)


def has_old(found: list[tuple[int, str]]) -> bool:
    return any(text.startswith("old") for _, text in found)


def is_removed(number: int, met: Met) -> bool:
    cycle = number // EACH
    moved = [files for action, files in met.of("removed") if action != "compress"]
    return cycle < HELD and any(name_of(cycle) in name for files in moved for name in files)


def name_of(cycle: int) -> str:
    return f"{3000 + cycle}T4.cq4"


def drain(path: Path) -> None:
    """Have what is left in a ring appended."""
    if (path / "async.ring").exists():
        with open_queue(
            path, quire.ManualClock(START_MS + CYCLES * SECOND_MS), buffer_mode="async"
        ) as queue:
            assert queue.ring is not None
            queue.ring.flush(timeout_s=300.0)


def check_format(path: Path) -> None:
    problems = [
        f"{file.name}: {problem}"
        for file in sorted(path.glob("*.cq4"))
        if is_ready(data := file.read_bytes())
        for problem in check_store(Store(data))
    ]
    assert not problems, f"the reference: {problems}"


def check_delivery(path: Path, met: Met, found: list[tuple[int, str]]) -> None:
    """The named tailer and the group get everything else, from where they were."""
    if not has_old(found):
        return
    due = {
        index
        for index, text in found
        if text.startswith("old") and int(text.split()[1]) > HELD * EACH
    }
    with open_queue(path, quire.ManualClock(START_MS + CYCLES * SECOND_MS)) as queue:
        with queue.tailer(TAILER) as tailer:
            rest = {excerpt.index for excerpt in tailer}
        got = {index for (index,) in met.of("got")}
        assert due <= got | rest, f"the named tailer misses {due - got - rest}"
        with queue.group(GROUP).consumer() as consumer:
            messages = consumer.read_many(1000)
            late = {message.index for message in messages}
            consumer.ack_many(messages)
        done = {index for (index,) in met.of("done")}
        assert due <= done | late, f"the group misses {due - done - late}"
        assert not done & late, f"the group delivered again {done & late}"


def check_copy(path: Path, met: Met, excused: set[int]) -> None:
    with open_queue(path, quire.ManualClock(START_MS), read_only=True) as queue:
        found = [(it.index, text_of(it.data)) for it in queue.tailer()]
    texts = {text for _, text in found}
    begun = {f"old {number} " for number in old_numbers()} | {it[0] for it in met.of("begin")}
    assert len(texts) == len(found)
    assert texts <= begun
    assert {f"old {number} " for number in old_numbers() if number not in excused} <= texts
    assert not (findings := quire.verify(path).findings), f"the copy: {findings}"


def check_next_append(path: Path, found: list[tuple[int, str]]) -> None:
    with open_queue(path, quire.ManualClock(START_MS + (CYCLES + 1) * SECOND_MS)) as queue:
        with queue.appender() as appender:
            index = appender.write_bytes(b"first 999 ")
        assert index > max((index for index, _ in found), default=0)
        with queue.tailer() as tailer:
            assert [excerpt.index for excerpt in tailer] == [*dict(found), index]


def check_vanilla(path: Path, met: Met) -> None:
    with open_vanilla(path, read_only=True, **VANILLA) as queue:
        found = [(it.index, text_of(it.data)) for it in queue.tailer()]
    check_messages(found, met, EACH, set())
    clock = quire.ManualClock(VANILLA_MS)
    with open_vanilla(path, clock=clock, **VANILLA) as queue:
        queue.appender().write_bytes(b"first 999 ")
        assert len([*queue.tailer()]) == len(found) + 1


def check_quick(path: Path, met: Met) -> None:
    with quire.open(path, read_only=True, format="quick-queue") as queue:
        found = [(it.index, text_of(it.data)) for it in queue.tailer(on_dead="raise")]
    check_messages(found, met, EACH, set())
    with quire.quick_queue.open(path, page_bytes=QUICK_BYTES) as queue:
        queue.appender("DD3").write_bytes(b"first 999 ")
        assert len([*queue.tailer()]) == len(found) + 1


CHECKS = {"vanilla": check_vanilla, "quick-queue": check_quick}
