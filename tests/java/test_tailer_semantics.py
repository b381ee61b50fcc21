"""Random scripts of moves and reads: Java's tailer and Quire's answer alike, step by step."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import quire
from tailer_scripts import (
    SHAPES,
    START,
    Outcome,
    answers,
    build,
    command,
    direction_of,
    java_answers,
    random_script,
)

pytestmark = pytest.mark.java

SCRIPTS = 300
STEPS = 12

FOUND, END, NOT_REACHED = "FOUND_IN_CYCLE", "END_OF_CYCLE", "NOT_REACHED_IN_CYCLE"
NOT_FOUND, BEYOND = "CYCLE_NOT_FOUND", "BEYOND_START_OF_CYCLE"
ANY = (FOUND, END, NOT_REACHED, NOT_FOUND, BEYOND)


@dataclass(frozen=True)
class Deviation:
    """Where Quire does otherwise on purpose, with the shortest script that shows it."""

    reason: str
    shape: str
    example: str  # moves are to cycle.sequence
    before: Sequence[str]  # the states from which
    java: tuple[Sequence[str], Sequence[str]]  # kinds of result, states
    quire: tuple[Sequence[str], Sequence[str]]
    same_index: bool
    directions: str = "FB"

    @property
    def script(self) -> list[str]:
        return ["reopen", *map(command, self.example.split(", "))]

    def covers(self, script: Sequence[str], before: Outcome, java: Outcome, own: Outcome) -> bool:
        return (
            script[-1].split()[0] == self.script[-1].split()[0]
            and direction_of(script[:-1]) in self.directions
            and before.state in self.before
            and (java.index == own.index) == self.same_index
            and all(
                outcome.kind in kinds and outcome.state in states
                for outcome, (kinds, states) in ((java, self.java), (own, self.quire))
            )
        )


DEVIATIONS = [
    Deviation(
        "When a move goes on in the file of a successful one and fails, Java stays where it was; "
        "from anywhere else the same move goes to the index. Quire always goes.",
        *("three", "move 0.0, move 0.3", ANY),
        java=(["false"], [FOUND]),
        quire=(["false"], [FOUND, END, NOT_REACHED]),
        same_index=False,
    ),
    Deviation(
        "The same, when the tailer is there already; and at the marker of the last file, where "
        "Java's toEnd gives END_OF_CYCLE too.",
        *("three", "move 0.2, read, move 0.3", ANY),
        java=(["false"], [FOUND]),
        quire=(["false"], [END]),
        same_index=True,
    ),
    Deviation(
        "A failed move that leads to the end keeps in Java the state of the failed move before.",
        *("one", "move 0.6, move 0.5", (NOT_REACHED, NOT_FOUND, BEYOND)),
        java=(["false"], [NOT_REACHED, NOT_FOUND, BEYOND]),
        quire=(["false"], [FOUND, END, NOT_REACHED]),
        same_index=True,
    ),
    Deviation(
        "Java takes any sequence of a cycle without messages for its end.",
        *("metadata between", "move 1.7", ANY),
        java=(["false"], [FOUND, END]),
        quire=(["false"], [NOT_REACHED]),
        same_index=True,
    ),
    Deviation(
        "At the end of the queue Java keeps the state of a move to a missing cycle.",
        *("one", "toEnd, move 9.0, read", (NOT_FOUND,)),
        java=(["null"], [NOT_FOUND]),
        quire=(["null"], [FOUND, END]),
        same_index=True,
    ),
    Deviation(
        "The same, when the direction changes.",
        *("one", "toEnd, move 9.0, direction B, direction F", (NOT_FOUND, FOUND)),
        java=(["ok"], [NOT_FOUND, FOUND]),
        quire=(["ok"], [FOUND, END]),
        same_index=True,
    ),
    Deviation(
        "At the end of a file, after a move to a missing cycle, Java needs a read to notice.",
        *("three", "move 0.3, move 9.0, read", (NOT_FOUND,)),
        java=(["null"], [END]),
        quire=(["message", "null"], [FOUND]),
        same_index=False,
        directions="F",
    ),
    Deviation(
        "Backward from behind the last message Java finds nothing, for ever.",
        *("one", "move 0.6, direction B, read", (NOT_REACHED, NOT_FOUND, FOUND)),
        java=(["null"], [NOT_REACHED, NOT_FOUND]),
        quire=(["message"], [FOUND, BEYOND]),
        same_index=False,
        directions="B",
    ),
    Deviation(
        "Backward from the end of an ended file Java passes over that file, and all but the first "
        "message of the one before.",
        *("three ended", "toEnd, direction B, read", (END, NOT_FOUND)),
        java=(["null", "message"], [END, FOUND, BEYOND, NOT_REACHED]),
        quire=(["message"], [FOUND, BEYOND]),
        same_index=False,
        directions="B",
    ),
    Deviation(
        "Backward, Java takes a missing cycle for the start: it keeps its index, but then reads "
        "from the end of that cycle.",
        *("one", "move 0.1, direction B, move 9.0", ANY),
        java=(["false"], [BEYOND]),
        quire=(["false"], [NOT_FOUND]),
        same_index=True,
        directions="B",
    ),
    Deviation(
        "In an empty queue Java's tailer learns of the first message when it reads.",
        *("empty", "appendText more", ("UNINITIALISED",)),
        java=(["index"], ["UNINITIALISED"]),
        quire=(["index"], [FOUND]),
        same_index=False,
    ),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("version", ["5.27ea11", "2026.4"])
def test_scripts_are_answered_as_java_does(version: str, shape: str, tmp_path: Path) -> None:
    build(SHAPES[shape], tmp_path / "java")
    shutil.copytree(tmp_path / "java", tmp_path / "quire")
    rng = random.Random(shape)  # noqa: S311 - a seed, so that a failure comes again
    scripts = [random_script(rng, SHAPES[shape].counts, STEPS) for _ in range(SCRIPTS)]
    both = zip(
        scripts,
        java_answers(version, tmp_path / "java", scripts),
        answers(tmp_path / "quire", scripts),
        strict=True,
    )
    unexpected = [found for it in both if (found := first_difference(*it))]
    assert not unexpected, f"{len(unexpected)} scripts, such as\n{min(unexpected, key=len)}"


def test_without_direction_the_same_message_comes_again(tmp_path: Path) -> None:
    """At a message: behind the last one, or on turning back, Java is not where its index says."""
    build(SHAPES["three"], tmp_path)
    script = [
        "reopen",
        command("move 1.1"),
        "direction N",
        "read",
        "read",
        command("move 3.0"),
        "read",
    ]
    (java,) = java_answers("5.27ea11", tmp_path, [script])
    assert answers(tmp_path, [script]) == [java]
    assert java[3] == java[4]


@pytest.mark.parametrize("version", ["5.27ea11", "2026.4"])
def test_a_striding_tailer_visits_what_java_visits(version: str, tmp_path: Path) -> None:
    build(SHAPES["many"], tmp_path)
    turned = ["striding false", "read", "read", "striding true", "read", "direction F", "read"]
    scripts = [
        ["reopen", "direction B", "toEnd", "striding true", *["read"] * 50],
        ["reopen", command("move 7.71"), "direction B", "striding true", *["read"] * 5, *turned],
    ]
    java = java_answers(version, tmp_path, scripts)
    assert answers(tmp_path, scripts) == java
    messages = [step.result for step in java[0] if step.kind == "message"]
    assert 30 < len(messages) < 50


def test_java_strides_by_the_roll_cycle_and_quire_by_the_index(tmp_path: Path) -> None:
    clock = quire.ManualClock(START)
    with (
        quire.open(
            tmp_path,
            roll_cycle="TEST4_DAILY",
            clock=clock,
            layout=quire.LayoutOptions(index_spacing=16),
        ) as queue,
        queue.appender() as appender,
    ):
        appender.write_many([b"message"] * 40)
    script = ["reopen", "direction B", "toEnd", "striding true", *["read"] * 11]
    (java,) = java_answers("5.27ea11", tmp_path, [script])
    (own,) = answers(tmp_path, [script])
    sequences = [
        [int(step.result.split()[0], 16) & 0xFFFF for step in steps if step.kind == "message"]
        for steps in (java, own)
    ]
    assert sequences == [[39, *range(36, -1, -4)], [39, 32, 16, 0]]


@pytest.mark.parametrize("number", range(len(DEVIATIONS)))
def test_deviations_are_still_as_described(number: int, tmp_path: Path) -> None:
    deviation = DEVIATIONS[number]
    build(SHAPES[deviation.shape], tmp_path / "java")
    shutil.copytree(tmp_path / "java", tmp_path / "quire")
    script = deviation.script
    (java,) = java_answers("5.27ea11", tmp_path / "java", [script])
    (own,) = answers(tmp_path / "quire", [script])
    assert java[:-1] == own[:-1]
    assert deviation.covers(script, java[-2], java[-1], own[-1]), (java[-1], own[-1])


def first_difference(script: list[str], java: list[Outcome], own: list[Outcome]) -> str | None:
    """The script up to the first difference, unless that is known; behind it all may differ."""
    for number, (theirs, ours) in enumerate(zip(java, own, strict=True)):
        if theirs != ours:
            steps = script[: number + 1]
            if any(it.covers(steps, java[number - 1], theirs, ours) for it in DEVIATIONS):
                return None
            return "\n".join([*steps, f"java  {theirs}", f"quire {ours}"])
    return None
