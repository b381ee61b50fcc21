"""A pipeline as its file defines it, in values; ``load`` makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Action = Literal["quarantine", "drop", "fail", "warn"]

# What a row did that broke several rules: the first of these holds.
ACTIONS: Final[tuple[Action, ...]] = ("fail", "quarantine", "drop", "warn")

MALFORMED: Final = "malformed"
LATE: Final = "late"
DUPLICATE: Final = "duplicate"
RESERVED: Final = (MALFORMED, LATE, DUPLICATE)


@dataclass(frozen=True, slots=True)
class Rule:
    """An expectation: a SQL condition that has to be true, not null, of each row."""

    name: str
    condition: str
    action: Action


@dataclass(frozen=True, slots=True)
class Watermark:
    """Rows whose time is more than the delay before the latest one in front of them are late."""

    column: str
    delay_us: int
    delay: str
    by: tuple[str, ...] | None
    action: Action


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """Rows after the first one with the same keys are duplicates."""

    by: tuple[str, ...]
    within_us: int | None
    within: str | None
    action: Action


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: followed from batch to batch, or a lookup that is read whole."""

    name: str
    format: str
    path: str
    schema: str | None
    options: Mapping[str, str]
    stream: bool
    malformed: Action | None
    line: int

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rule that rows could be decoded, if there is to be one."""
        if self.malformed is None:
            return ()
        return (Rule(MALFORMED, "_error is null", self.malformed),)


@dataclass(frozen=True, slots=True)
class Step:
    """A transform and the rules its rows have to keep; without a transform, the rules alone."""

    name: str
    inputs: tuple[str, ...]
    line: int
    sql: str | None = None
    python: str | None = None
    order: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] = ()
    watermark: Watermark | None = None
    deduplicate: Deduplicate | None = None
    window_us: int | None = None

    @property
    def kind(self) -> str:
        """What the transform is written in."""
        return "sql" if self.sql is not None else "python" if self.python is not None else "rules"

    @property
    def is_checked(self) -> bool:
        """Whether some rows may stay behind, or be counted."""
        return bool(self.rules or self.watermark or self.deduplicate)


@dataclass(frozen=True, slots=True)
class Sink:
    """Where the rows of a step go."""

    step: str
    format: str
    path: str
    table: str | None
    partition_by: tuple[str, ...]
    options: Mapping[str, str]
    line: int
    order_by: tuple[str, ...] | None = None

    @property
    def destination(self) -> str:
        """What a person calls it."""
        return self.table or self.path


@dataclass(frozen=True, slots=True)
class Schedule:
    """When batches are made: `once`, `available-now`, or `every` so many seconds."""

    kind: Literal["once", "available-now", "every"]
    every_us: int | None = None
    text: str = ""

    def __str__(self) -> str:
        """Return it as it was written."""
        return self.text or self.kind


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A whole pipeline; steps stand in the order in which they can be computed."""

    name: str
    file: Path
    state: Path
    schedule: Schedule
    is_full: bool
    settings: Mapping[str, str]
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    quarantine: Sink

    def uses(self, name: str) -> int:
        """Return how many steps and sinks read the source or step *name*."""
        reading = sum(step.inputs.count(name) for step in self.steps)
        return reading + sum(sink.step == name for sink in self.sinks)

    @property
    def has_quarantine(self) -> bool:
        """Whether any rule sends rows there."""
        rules = [rule for source in self.sources for rule in source.rules]
        rules += [rule for step in self.steps for rule in step.rules]
        rules_of_time = [it for step in self.steps for it in (step.watermark, step.deduplicate)]
        return any(it.action == "quarantine" for it in (*rules, *rules_of_time) if it is not None)
