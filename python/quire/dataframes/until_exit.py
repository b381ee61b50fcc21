"""Batches for threads of pyarrow, until the interpreter exits."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import pyarrow as pa

_CALL_S: Final = 10.0
"""The longest time to wait for calls in progress at exit."""
_IDLE_S: Final = 2.0
"""The longest time to wait for C++ threads to become idle at exit."""
_LOOKS: Final = 5
"""How often in a row they must be asleep, as a thread that waits for Python sleeps, too."""
_POLL_S: Final = 0.005


class UntilExit(Iterator[pa.RecordBatch]):
    """
    The batches of a generator until the interpreter exits.

    pyarrow reads ahead in its own threads, which also release the generator. A C++ thread that
    enters Python while the interpreter is being finalized aborts the process (SIGABRT) or keeps it
    from exiting.

    Args:
        batches: The generator.

    """

    def __init__(self, batches: Generator[pa.RecordBatch]) -> None:
        """Create the iterator without reading."""
        self._batches = batches
        self._call = _exit.call  # modules may be gone when this object is deleted

    def __next__(self) -> pa.RecordBatch:
        """
        Return the next batch.

        Raises:
            StopIteration: No batch is left, or the interpreter is exiting.

        """
        if _exit.has_begun:
            raise StopIteration
        with self._call():
            return next(self._batches)

    def __del__(self) -> None:
        """Close the generator's tailer in a call that the exit waits for."""
        with self._call():
            self._batches.close()


class _Exit:
    """The exit of the interpreter, which waits for calls of threads that Python did not start."""

    def __init__(self) -> None:
        self.has_begun = False
        self._calls: set[object] = set()

    @contextmanager
    def call(self) -> Generator[None]:
        """Count a call as in progress."""
        this = object()
        self._calls.add(this)
        try:
            yield
        finally:
            self._calls.discard(this)

    def begin(self) -> None:
        """Stop returning batches, and wait until no such thread runs Python code."""
        self.has_begun = True
        began, looks = monotonic(), 0
        while looks < _LOOKS and monotonic() - began < (_CALL_S if self._calls else _IDLE_S):
            looks = 0 if self._calls or _is_any_awake() else looks + 1
            sleep(_POLL_S)


def _is_any_awake() -> bool:
    """Whether a thread that Python did not start is running; False without ``/proc``."""
    known = {str(it.native_id) for it in threading.enumerate() if not it.name.startswith("Dummy-")}
    for thread in Path("/proc/self/task").glob("*"):
        try:
            state = (thread / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue  # the thread has just ended
        if thread.name not in known and state != "S":
            return True
    return False


_exit = _Exit()
atexit.register(_exit.begin)
