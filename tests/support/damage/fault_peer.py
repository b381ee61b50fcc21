"""Lives in the build with fault points (`fault_life.py`), and what must hold after each."""

from __future__ import annotations

import json
import os
import random
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import quire
from fault_life import BLOCK, NAMES, SECOND_MS, Journal, text
from paths import ROOT, SUPPORT
from queues import START_MS
from reference import check_store, open_queue, read_queue

BUILD = ROOT / "build" / "faults"
POINTS = ROOT / "crates" / "kernel" / "src" / "probe" / "fault.rs"
OTHERS = ("group.", "ring.", "quick-queue.", "repair.", "vanilla.", "waiting.")
NUMBER = re.compile(rb"<(-?\d+)>")
SIGKILL = -9
EXCUSED = ("write position", "sequence word", "bytes behind", "index:", "index array:")


def points() -> list[str]:
    """Return the names in the kernel's list, but for those of other formats, repairs, sleepers."""
    listed = POINTS.read_text("utf-8").split("POINTS: &[&str] = &[")[1].split("];")[0]
    return [name for name in re.findall(r'"([\w.-]+)"', listed) if not name.startswith(OTHERS)]


def calls() -> list[str]:
    """Return those that are system calls, and so can fail."""
    sources = (file.read_text("utf-8") for file in POINTS.parents[1].rglob("*.rs"))
    named = (re.findall(r'fault::call!\(\s*"([\w.-]+)"', source) for source in sources)
    return sorted({name for names in named for name in names if not name.startswith(OTHERS)})


def sample(name: str, count: int, at_most: int) -> list[int]:
    """Return which of *count* times at a point are tried: the first, the last, and others between
    them, the same ones each time."""
    between = range(2, count)
    rng = random.Random(name)  # noqa: S311 - to be repeated
    middle = rng.sample(between, min(len(between), max(0, at_most - 2)))
    return sorted({1, count, *middle})


@dataclass(frozen=True)
class Outcome:
    """How a life went."""

    exit: int
    error: str | None = None
    hits: dict[str, int] = field(default_factory=dict[str, int])
    failures: int = 0
    held: list[str] = field(default_factory=list[str])


def least(one: Outcome, other: Outcome) -> dict[str, int]:
    """Return how often each point was met at least: some calls are made again when time passes."""
    return {name: min(one.hits[name], other.hits[name]) for name in points()}


class FaultBuild:
    """A process of the build with fault points, which forks a child for each life."""

    def __init__(self) -> None:
        if not BUILD.is_dir():
            raise RuntimeError("the build with fault points is missing: run `make test` once")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SUPPORT / "fault_life.py")],
            env=os.environ | {"PYTHONPATH": str(BUILD)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def live(
        self,
        directory: Path,
        fault: str = "",
        *,
        life: str = "whole",
        second: int = 0,
        may_fail: bool = False,
    ) -> Outcome:
        """Live one life in *directory*; the clock starts at *second*."""
        asked = {"dir": str(directory), "fault": fault, "life": life}
        directory.mkdir(exist_ok=True)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(asked | {"second": second, "may_fail": may_fail}) + "\n")
        stdin.flush()
        return Outcome(**json.loads(stdout.readline()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


@dataclass
class Call:
    """An append: its messages' numbers, and what came of it."""

    kind: str
    numbers: range
    last_index: int | None = None
    failed: bool = False


class Record:
    """The journal, read."""

    def __init__(self, path: Path) -> None:
        self.calls: list[Call] = []
        self.positions: dict[str, list[int]] = {name: [] for name in NAMES}
        """Where a reader may go on: where it was last, and what it was about to store."""
        for line in path.read_text("utf-8").splitlines():
            word, *rest = line.split()
            if word == "send":
                first, count = int(rest[1]), int(rest[2])
                self.calls.append(Call(rest[0], range(first, first + count)))
            elif word == "ack":
                self.calls[-1].last_index = int(rest[1])
            elif word == "fail":
                self.calls[-1].failed = True
            elif word == "at":
                self.positions[rest[0]] = [int(rest[1])]
            elif word == "goes":
                self.positions[rest[0]].append(int(rest[1]))

    @property
    def is_acknowledged(self) -> bool:
        return any(call.last_index is not None for call in self.calls)


def check_messages(record: Record, found: list[tuple[int, bytes]], crashes: int) -> int:
    """Whatever was acknowledged is there once, in order, at its index; of each crash at most one
    call is there that never returned, or its first messages. Return how many messages that is."""
    rest = iter([(index, int(NUMBER.findall(payload)[0])) for index, payload in found])
    seen = next(rest, None)
    unacknowledged = calls_lost = 0
    for call in record.calls:
        if call.kind == "metadata":
            continue
        there = list[tuple[int, int]]()
        while seen is not None and seen[1] in call.numbers:
            there.append(seen)
            seen = next(rest, None)
        assert [number for _, number in there] == [*call.numbers][: len(there)], call
        if call.last_index is not None:
            assert len(there) == len(call.numbers), f"lost: {call}"
            assert there[-1][0] == call.last_index, f"at another index: {call} {there}"
            assert there[0][0] == call.last_index - len(there) + 1, f"not in a row: {call} {there}"
        elif call.failed:
            assert not there or call.kind == "many", f"raised, and is there: {call}"
        else:
            calls_lost += 1
            unacknowledged += len(there)
    assert seen is None, f"invented, repeated or out of order: {seen}"
    assert calls_lost <= crashes
    return unacknowledged


def check_metadata(record: Record, path: Path) -> None:
    """Metadata that was acknowledged is there once, and nothing that nobody wrote."""
    asked = [call for call in record.calls if call.kind == "metadata"]
    everything = read_queue(path, metadata=True)
    found = [int(n) for _, payload in everything for n in NUMBER.findall(payload)]
    for call in asked:
        there = found.count(call.numbers[0])
        assert there == 1 if call.last_index is not None else there <= 1, call


def problems(path: Path, crashes: int) -> Iterator[str]:
    """Name what is wrong with a queue that outlived crashes.

    A crash may leave a message without an index entry, hints behind, and bytes behind the end; what
    entries there are must be right, and hints must name a message.
    """
    _, stores = open_queue(path)
    for cycle, store in stores.items():
        yield from (
            f"{cycle}: {found}" for found in check_store(store) if not found.startswith(EXCUSED)
        )
        messages = {d.sequence: d.position for d in store.documents if not d.is_metadata}
        indexed, arrays = store.index()
        yield from (
            f"{cycle}: slot of {sequence}: {position}"
            for sequence, position in indexed.items()
            if messages.get(sequence) != position
        )
        yield from (
            f"{cycle}: used={used} slots={slots}"
            for used, slots in arrays
            if sum(map(bool, slots)) - crashes > used or (used and not slots[used - 1])
        )
        named = {0, store.numbers["index2Index"]} | {*messages.values()}
        if store.numbers["writePosition"] not in named:
            yield f"{cycle}: write position: {store.numbers['writePosition']}"


def check_newest(path: Path) -> None:
    """After an append the words of the newest file are those of its last message."""
    store = max(open_queue(path)[1].items())[1]
    *_, last = (d for d in store.documents if not d.is_metadata)
    (word,) = struct.unpack_from("<Q", store.data, store.offsets["writePosition"] + 8)
    assert store.numbers["writePosition"] == last.position
    assert word & 0xFFFFFFFF == last.sequence


def survives(directory: Path, *, second: int, crashes: int = 1) -> int:
    """Open what a life left with the ordinary build, check it, go on, and check again.

    Return how many messages were there that nobody knew of.
    """
    path, journal = directory / "queue", directory / "journal"
    record = Record(journal)
    if record.is_acknowledged:
        with quire.open(
            path, read_only=True, wait=quire.WaitOptions(eof_grace_s=0), timeout_s=0
        ) as queue:
            check_messages(record, [*map(pair, queue.tailer())], crashes)
    clock = quire.ManualClock(START_MS + second * SECOND_MS)
    more = Journal(journal)
    with quire.open(
        path,
        roll_cycle="TEST4_SECONDLY",
        layout=quire.LayoutOptions(index_count=8, index_spacing=2),
        block_bytes=BLOCK,
        clock=clock,
        timeout_s=0.05,
        pretouch=False,
        wait=quire.WaitOptions(eof_grace_s=0),
    ) as queue:
        for name, allowed in record.positions.items():
            with queue.tailer(name) as tailer:
                if allowed:
                    assert tailer.index in allowed, name
                else:
                    assert getattr(tailer.read(), "index", None) == queue.first_index, name
        appender = queue.appender()
        for count in (1, 3):
            more.send(
                "many", count, lambda numbers: appender.write_many([text(n) for n in numbers])
            )
        appender.normalise_eofs()
        record = Record(journal)
        found = [*map(pair, queue.tailer())]
        unacknowledged = check_messages(record, found, crashes)
        assert queue.entry_count == len(found)
        assert [index for index, _ in found if not move(queue, index)] == []
    more.close()
    check_metadata(record, path)
    assert [*problems(path, crashes)] == []
    check_newest(path)
    assert read_queue(path) == found
    return unacknowledged


def pair(excerpt: quire.Excerpt) -> tuple[int, bytes]:
    return excerpt.index, excerpt.data


def move(queue: quire.JournalQueue, index: int) -> bool:
    with queue.tailer() as tailer:
        return tailer.move_to_index(index)
