"""The record of a queue's replicas when an epoch begins, or messages are removed from its end."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from os import PathLike

from quire._native import ReplicaStates


@contextmanager
def without_source(states: ReplicaStates) -> Generator[None]:
    """
    Keep sources from storing the states of replicas meanwhile.

    Raises:
        WriterInUseError: A source of the queue runs.

    """
    states.lock_source()
    try:
        yield
    finally:
        states.unlock_source()


@contextmanager
def cut(path: str | PathLike[str], last: int | None) -> Generator[None]:
    """
    Record that the messages after this one are removed meanwhile; None: the index is unknown.

    They no longer count as replicated, nor do other messages that get their indexes.

    Raises:
        WriterInUseError: A source of the queue runs.

    """
    states = ReplicaStates.open_existing(path)
    with nullcontext() if states is None else without_source(states):
        if states is not None:
            states.note_cut(last)
        yield
