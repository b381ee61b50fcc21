"""What the output of a service tells to be done: the history of its messages, and notes between."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TypeAlias

from quire._native import MessageHistory, ReadDocument, entry_bytes
from quire.appending import Appender
from quire.queue import Queue
from quire.tailing import Tailer

Source: TypeAlias = tuple[int, int]
"""A message of an input: the input's source id, and the index."""

_CONSUMED = "consumed"
"""The metadata event of a note. It names inputs that were handled and led to no output."""
_NOTE = entry_bytes(_CONSUMED, "")[:-1]


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """Of one input everything is done up to a message; of that, so many outputs are there."""

    source: int
    index: int
    outputs: int | None
    """None: all of them, however many."""


def done(output: Queue, inputs: Iterable[int]) -> list[Done]:
    """
    Return what is done, in its order, as far as the order matters.

    Only the last entry may be half done: whoever handled it handled nothing after it.
    """
    ids = set(inputs)
    with output.tailer() as tailer:
        return _of_one(tailer, ids) if len(ids) == 1 else _of_several(tailer, ids)


def write_note(appender: Appender, runs: Iterable[Source]) -> None:
    """Note, where no tailer looks, up to which messages the inputs were handled, in this order."""
    with appender.writing_document(metadata=True) as document:
        document.write(_CONSUMED, [number for run in runs for number in run])


def _of_one(tailer: Tailer, inputs: set[int]) -> list[Done]:
    """Count the outputs of the newest message; what is before them is done."""
    tailer.direction = "backward"
    tailer.to_end()
    newest: Source | None = None
    outputs = 0
    while tailer.read_bytes() is not None:
        source = _source(tailer.history, inputs)
        if source is None:
            continue
        if newest is not None and source != newest:
            break
        newest = source
        outputs += 1
    return [] if newest is None else [Done(*newest, outputs)]


def _of_several(tailer: Tailer, inputs: set[int]) -> list[Done]:
    """Tell from the outputs, and the notes between them, who came when."""
    found: list[Done] = []
    while True:
        with tailer.reading_document(include_metadata=True) as document:
            if not document.is_present:
                break
            if document.is_metadata:
                found += _of_note(document)
                continue
            source = _source(document.history, inputs)
        if source is None:
            continue
        outputs = 1
        if found and found[-1].source == source[0]:
            before = found.pop()
            outputs += (before.outputs or 0) if before.index == source[1] else 0
        found.append(Done(*source, outputs))
    return [dataclasses.replace(entry, outputs=None) for entry in found[:-1]] + found[-1:]


def _of_note(document: ReadDocument) -> list[Done]:
    if bytes(document.bytes[: len(_NOTE)]) != _NOTE:
        return []
    numbers = iter(document.map()[_CONSUMED])
    return [Done(source, index, None) for source, index in zip(numbers, numbers, strict=True)]


def _source(history: MessageHistory | None, inputs: set[int]) -> Source | None:
    """Return the message of an input that led to an output; None if it came from elsewhere."""
    if history is None or not history.sources or history.sources[-1][0] not in inputs:
        return None
    return history.sources[-1]
