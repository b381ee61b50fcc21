"""SIGTERM as an exit, for verbs that leave something to do at their end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def exit_on_sigterm(code: int) -> Generator[None]:
    """Have SIGTERM end the process as ``sys.exit(code)`` does, so that what is open is closed."""

    def leave(*_: object) -> None:
        sys.exit(code)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
