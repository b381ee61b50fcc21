"""Exit codes, and the one line on stderr that says what failed."""

from __future__ import annotations

import os
import sys
from typing import Final

OK: Final = 0
FAILED: Final = 1
USED_WRONGLY: Final = 2
INTERRUPTED: Final = 130  # what a shell makes of SIGINT
TERMINATED: Final = 143  # of SIGTERM


def print_error(text: str) -> None:
    """Write an error on one line of stderr, with control characters escaped."""
    from quire._common.terminal import escape_line

    sys.stderr.write(f"quire: {escape_line(' '.join(map(str.strip, text.splitlines())))}\n")
    sys.stderr.flush()


def error_text(error: Exception) -> str:
    """Return an error's text; that of the operating system with its path."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: path={error.filename}"
    if isinstance(error, OSError) and error.strerror and _is_of_stdout(error):
        return f"cannot write to stdout: {error.strerror}"
    return str(error)


def _is_of_stdout(error: OSError) -> bool:
    """Return whether what could not be written is still in the buffer of stdout."""
    try:
        sys.stdout.flush()
    except OSError as again:
        _drop_stdout()
        return again.errno == error.errno
    return False


def _drop_stdout() -> None:
    """Silence the interpreter's own complaint about stdout at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
