"""
The standard streams of a command: opened where they are closed, and what is written to them.

Bytes are pushed out where a person waits for them, or another program, and coloured where a person
looks: on a terminal, unless NO_COLOR is set.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STREAMS: Final = (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))


STDOUT: Final = "<stdout>"
"""The file name of errors of stdout."""


def open_missing_streams() -> None:
    """
    Open what the caller of this process has closed, as ``>&-`` does.

    Otherwise the file of a queue would take its number. Reading stdin and writing to stdout then
    fail, so that nothing is taken for an empty input, or counts as shown; stderr goes nowhere.
    """
    for name, mode in _STREAMS:
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, mode)
            access = "r" if name == "stdin" else "w"
            stream = open(descriptor, access, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


class _Stdout(io.BufferedWriter):
    """
    Stdout, whose errors are marked as its own.

    The file below is not a class of ours: an interrupt between what the system has written and
    what the buffer knows of it would have that written again.
    """

    def write(self, data: ReadableBuffer, /) -> int:
        """Take bytes, and return how many."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise

    def flush(self) -> None:
        """Write what was taken."""
        try:
            super().flush()
        except OSError as error:
            error.filename = STDOUT
            raise


def mark_stdout() -> None:
    """
    Have stdout mark its errors, and keep what it could not write also under ``PYTHONUNBUFFERED``.

    A write that fails does not say which file it was for, and without a buffer, one that writes a
    part loses the rest. What somebody waits for is pushed out anyway.
    """
    if sys.__stdout__ is not None and sys.stdout is not sys.__stdout__:
        return  # marked before, or of a caller who captures it
    sys.stdout.flush()
    raw = io.FileIO(sys.stdout.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        _Stdout(raw),
        encoding=sys.stdout.encoding,
        errors=sys.stdout.errors,
        line_buffering=raw.isatty(),
    )


def check_reader() -> None:
    """
    Fail as a write would if nobody reads stdout any more.

    Raises:
        BrokenPipeError: Standard output is a pipe or a socket whose reader has closed it.

    """
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # in a notebook, or a test
        return
    poll = select.poll()
    poll.register(descriptor, 0)
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class Output:
    """
    Stdout as it is, without an encoding.

    What goes to a terminal is shown at once. Elsewhere it is collected, until :meth:`flush`.
    """

    def __init__(self) -> None:
        """Take over this process's stdout."""
        self._stream = sys.stdout.buffer
        self.is_terminal = self._stream.isatty()

    def write(self, data: bytes | memoryview) -> None:
        """Write bytes as they are."""
        self._stream.write(data)
        if self.is_terminal:
            self._stream.flush()

    def flush(self) -> None:
        """Write the collected bytes."""
        self._stream.flush()


def has_color(stream: IO[Any] | None = None) -> bool:
    """Return whether text on *stream*, by default stdout, may be coloured."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return (stream or sys.stdout).isatty()


def styled(text: str, stream: IO[Any] | None = None, /, **style: Any) -> str:  # noqa: ANN401
    """
    Return text in a style of ``click.style``, such as ``fg="red"``; plain where nobody looks.

    The text must be harmless already: see :mod:`quire._common.terminal`.
    """
    import click  # which may be missing while the streams are opened

    return click.style(text, **style) if has_color(stream) else text
