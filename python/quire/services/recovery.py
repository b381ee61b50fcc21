"""The recovery point of a service, derived from its output queue."""

from __future__ import annotations

import dataclasses
import os
import urllib.parse
import zlib
from collections.abc import Iterable
from typing import TypeAlias

from quire._native import MessageHistory, ReadDocument, entry_bytes
from quire.handles.journal.appender import JournalAppender
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.tailer import JournalTailer

Source: TypeAlias = tuple[int, int]
"""A message of an input: the input's source id, and the index."""

_CONSUMED = "consumed"
"""The metadata event of a checkpoint: the last handled message of each input, in order."""
_OUTPUTS = "outputs"
"""The second event of a checkpoint: how many outputs the last of these messages had so far."""
_NOTE = entry_bytes(_CONSUMED, "")[:-1]


@dataclasses.dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """Every message of an input up to *index* was handled; that of *index* may lack outputs."""

    source: int
    index: int
    outputs: int | None
    """How many outputs of the message at *index* are written; None: all of them."""


def done(output: JournalQueue, inputs: Iterable[int]) -> list[RecoveryPoint]:
    """
    Return the recovery points, in the order of handling as far as that order matters.

    Only the last one may lack outputs: nothing was handled after it.
    """
    ids = set(inputs)
    with output._whole() as queue, queue.tailer(on_missing="skip") as tailer:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if len(ids) == 1:
            _go_to_newest(tailer, ids)
        return _read_plan(tailer, ids)


def write_checkpoint(
    appender: JournalAppender, runs: Iterable[Source], outputs: int | None = None
) -> int:
    """
    Write a checkpoint, the messages handled so far, as metadata, which tailers skip.

    Args:
        appender: The appender of the output.
        runs: The last handled message of each run of messages of one input, in order.
        outputs: How many outputs of the last message are written; None: all of them.

    Returns:
        The index of the message after the checkpoint.

    """
    with appender.writing_document(metadata=True) as document:
        document.write(_CONSUMED, [number for run in runs for number in run])
        if outputs is not None:
            document.write(_OUTPUTS, outputs)
    return document.index


def reader_name(output: str) -> str:
    """Return the name under which an input keeps the position of the service with this output."""
    path = os.path.realpath(output)
    # Names are case-insensitive, paths are not.
    suffix = "" if path == path.lower() else f"#{zlib.crc32(os.fsencode(path)):08x}"
    return f"service:{urllib.parse.quote(os.fsencode(path))}{suffix}"


def _go_to_newest(tailer: JournalTailer, inputs: set[int]) -> None:
    """Go to the first output of the newest message: everything before it was handled."""
    tailer.direction = "backward"
    tailer.to_end()
    newest: Source | None = None
    first: int | None = None
    while tailer.read_bytes() is not None:
        source = _source(tailer.history, inputs)
        if source is None:
            continue
        if newest is not None and source != newest:
            break
        newest, first = source, tailer.last_read_index
    tailer.direction = "forward"
    if first is None:
        tailer.to_start()
    else:
        tailer.move_to_index(first)


def _read_plan(tailer: JournalTailer, inputs: set[int]) -> list[RecoveryPoint]:
    """Read the outputs and the checkpoints between them, in the order of handling."""
    plan = _Plan()
    while True:
        with tailer.reading_document(include_metadata=True) as document:
            if not document.is_present:
                break
            if document.is_metadata:
                plan.add_note(*_of_note(document, inputs))
            elif (source := _source(document.history, inputs)) is not None:
                plan.add_output(source)
    entries = plan.entries
    return [dataclasses.replace(entry, outputs=None) for entry in entries[:-1]] + entries[-1:]


class _Plan:
    """The recovery points, while the output is read."""

    def __init__(self) -> None:
        self.entries: list[RecoveryPoint] = []
        self._latest: dict[int, int] = {}

    def add_output(self, source: Source) -> None:
        """Count an output of a message."""
        before = self._pop_if(source[0])
        is_same = before is not None and before.index == source[1]
        counted = (before.outputs or 0) if before is not None and is_same else 0
        self._push(RecoveryPoint(*source, counted + 1))

    def add_note(self, runs: list[Source], outputs: int | None) -> None:
        """Apply a checkpoint; most of it may be known already."""
        at_hand = runs[-1] if runs and outputs is not None else None
        if at_hand is not None:
            runs = runs[:-1]
            if self.entries and _named(self.entries[-1]) == at_hand:
                self.entries.pop()
        for run in runs:
            known = self._latest.get(run[0], -1)
            if run[1] > known or (self.entries and _named(self.entries[-1]) == run):
                self._pop_if(run[0])
                self._push(RecoveryPoint(*run, None))
        if at_hand is not None:
            self._pop_if(at_hand[0])
            self._push(RecoveryPoint(*at_hand, outputs))

    def _pop_if(self, source: int) -> RecoveryPoint | None:
        """Remove the last entry if it belongs to this input: a later message supersedes it."""
        if self.entries and self.entries[-1].source == source:
            return self.entries.pop()
        return None

    def _push(self, entry: RecoveryPoint) -> None:
        self.entries.append(entry)
        self._latest[entry.source] = entry.index


def _named(entry: RecoveryPoint) -> Source:
    return entry.source, entry.index


def _of_note(document: ReadDocument, inputs: set[int]) -> tuple[list[Source], int | None]:
    if bytes(document.bytes[: len(_NOTE)]) != _NOTE:
        return [], None
    values = document.map()
    numbers = iter(values[_CONSUMED])
    runs = list(zip(numbers, numbers, strict=True))
    outputs = values.get(_OUTPUTS)
    if outputs is not None and runs[-1][0] not in inputs:
        outputs = None  # the last message belongs to an input that is no longer read
    return [run for run in runs if run[0] in inputs], outputs


def _source(history: MessageHistory | None, inputs: set[int]) -> Source | None:
    """Return the message of an input that led to an output; None if it came from elsewhere."""
    if history is None or not history.sources or history.sources[-1][0] not in inputs:
        return None
    return history.sources[-1]
