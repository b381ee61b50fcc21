"""The descriptors 0, 1 and 2: opened where they are closed, and whether anyone reads stdout."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Final

_STREAMS: Final = (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))


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
            setattr(sys, name, os.fdopen(descriptor, access, encoding="utf-8"))


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
