"""Batches that threads of pyarrow ask for, until the interpreter ends."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Final
from weakref import WeakSet

import pyarrow as pa

_CALL_S: Final = 10.0
"""How long a call in progress is waited for at exit."""
_RELEASE_S: Final = 0.05
"""How long pyarrow has at exit to release what it reads from."""
_POLL_S: Final = 0.001


class UntilExit(Iterator[pa.RecordBatch]):
    """
    Batches of another iterator, and no more once the interpreter ends.

    pyarrow reads ahead in threads of its own. A thread of C++ that returns to Python while the
    interpreter is finalized aborts the process (SIGABRT), even after the program's last statement.

    Args:
        batches: The other iterator.

    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Read nothing yet."""
        self._batches = batches
        self.is_called = False
        _all.add(self)

    def __next__(self) -> pa.RecordBatch:
        """
        Return the next batch.

        Raises:
            StopIteration: No batch is left, or the interpreter ends.

        """
        if _exit.has_begun:
            raise StopIteration
        self.is_called = True
        try:
            return next(self._batches)
        finally:
            self.is_called = False


class _Exit:
    has_begun = False

    def begin(self) -> None:
        """Give threads no more batches, and wait until none of them runs Python code."""
        self.has_begun = True
        began = monotonic()
        while any(it.is_called for it in [*_all]) and monotonic() - began < _CALL_S:
            sleep(_POLL_S)
        began = monotonic()
        while len(_all) and monotonic() - began < _RELEASE_S:
            sleep(_POLL_S)


_all: WeakSet[UntilExit] = WeakSet()
_exit = _Exit()
atexit.register(_exit.begin)
