"""Scripts for tailers: the queues they run on, their answers from Java and from Quire."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import quire
from java_peer import JavaPeer

START = 1_700_000_000_000
DAY_MS = 86_400_000
CYCLE = 19675  # of START
LATER = 10  # cycles: where scripts begin to append
DIRECTIONS: dict[str, Literal["forward", "backward", "none"]] = {
    "F": "forward",
    "B": "backward",
    "N": "none",
}


@dataclass(frozen=True)
class Shape:
    """Messages in each cycle; a cycle that is left out has no file, one of 0 only metadata."""

    counts: dict[int, int]
    last_ended: bool = False  # an end-of-file marker in the last file


SHAPES = {
    "empty": Shape({}),
    "one": Shape({0: 5}),
    "one ended": Shape({0: 5}, last_ended=True),
    "three": Shape({0: 3, 1: 3, 3: 4}),
    "three ended": Shape({0: 3, 1: 3, 3: 4}, last_ended=True),
    "many": Shape({0: 9, 2: 1, 3: 6, 7: 140, 8: 5}),
    "metadata between": Shape({0: 2, 1: 0, 2: 3}),
    "metadata last": Shape({0: 2, 1: 0}),
}


@dataclass(frozen=True)
class Outcome:
    """What a command answered, and where the tailer is then."""

    result: str
    index: str
    state: str

    @property
    def kind(self) -> str:
        """What sort of answer it is: one message is like another, their indexes show elsewhere."""
        if self.result in ("ok", "null", "true", "false"):
            return self.result
        if self.result.startswith("!"):
            return "error"
        return "message" if " " in self.result else "index"


def build(shape: Shape, path: Path) -> None:
    clock = quire.ManualClock(START)
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=65536, clock=clock) as queue:
        if not shape.counts:
            return
        with queue.appender() as appender:
            for cycle, count in shape.counts.items():
                clock.now_ms = START + cycle * DAY_MS
                for number in range(count):
                    appender.write_text(f"message {cycle}.{number}")
                if count == 0:
                    with appender.writing_document(metadata=True) as document:
                        document.write("meta", 1)
            if shape.last_ended:
                clock.advance(DAY_MS)
                appender.write_text("in a file that is removed")
    if shape.last_ended:
        max(path.glob("*.cq4")).unlink()
        with quire.open(path) as queue:  # which tells the listing
            assert queue.cycles == [CYCLE + cycle for cycle in shape.counts]


def random_script(rng: random.Random, counts: dict[int, int], steps: int) -> list[str]:
    """From a new tailer on; moves are mostly to what exists and to the edges of it."""
    weights = {
        "read": 9,
        "toStart": 1,
        "toEnd": 2,
        "direction F": 2,
        "direction B": 2,
        "appendText more": 2,
        f"advance {DAY_MS}": 0.5,
        "": 5,
    }
    simple = rng.choices([*weights], [*weights.values()], k=steps)
    return ["reopen", *(step or command(random_move(rng, counts)) for step in simple)]


def random_move(rng: random.Random, counts: dict[int, int]) -> str:
    cycle = rng.choice([*counts] * 3 + [-1, 1, 2, 4, 9, LATER, LATER + 1])
    count = counts.get(cycle, 0)
    inside = [rng.randrange(count) for _ in range(4) if count]
    return f"move {cycle}.{rng.choice([*inside, count, count + 1, rng.randrange(4000)])}"


def command(step: str) -> str:
    """A step as `tailer-script` spells it."""
    if not step.startswith("move "):
        return step
    cycle, sequence = step.removeprefix("move ").split(".")
    return f"moveToIndex {(CYCLE + int(cycle) << 32) + int(sequence):x}"


def direction_of(script: Sequence[str]) -> str:
    return next((step[-1] for step in reversed(script) if step.startswith("direction")), "F")


@cache
def peer(version: str) -> JavaPeer:
    return JavaPeer(version)


def java_answers(version: str, path: Path, scripts: list[list[str]]) -> list[list[Outcome]]:
    lines = [line for script in scripts for step in script for line in (step, "index", "state")]
    text = "".join(f"{line}\n" for line in lines)
    found = iter(
        peer(version).run_with_input("tailer-script", text, dir=path, start=START + LATER * DAY_MS)
    )
    return [[Outcome(next(found), next(found), next(found)) for _ in script] for script in scripts]


def answers(path: Path, scripts: list[list[str]]) -> list[list[Outcome]]:
    clock = quire.ManualClock(START + LATER * DAY_MS)
    with (
        quire.open(path, clock=clock, wait=quire.WaitOptions(eof_grace_s=None)) as queue,
        queue.appender() as appender,
    ):
        return [answers_of_one(queue, appender, clock, script) for script in scripts]


def answers_of_one(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    clock: quire.ManualClock,
    script: list[str],
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with queue.tailer() as tailer:
        for step in script:
            match step.split():
                case ["appendText", text]:
                    result = f"{appender.write_text(text):x}"
                case ["advance", milliseconds]:
                    clock.advance(int(milliseconds))
                    result = "ok"
                case words:
                    result = execute(tailer, *words)
            outcomes.append(Outcome(result, f"{tailer.index:x}", tailer.state))
    return outcomes


def execute(tailer: quire.JournalTailer, name: str, argument: str = "") -> str:
    match name:
        case "read":
            found = tailer.read()
            return (
                "null" if found is None else f"{found.index:x} {len(found.data)} {found.data.hex()}"
            )
        case "moveToIndex":
            return str(tailer.move_to_index(int(argument, 16))).lower()
        case "direction":
            tailer.direction = DIRECTIONS[argument]
        case "striding":
            tailer.striding = argument == "true"
        case "toStart":
            tailer.to_start()
        case "toEnd":
            tailer.to_end()
        case _:
            assert name == "reopen"
    return "ok"
