"""Exit codes, and the one line on stderr that says what failed."""

from __future__ import annotations

import os
import sys
from typing import Final

from quire.cli.streams import STDOUT

OK: Final = 0
FAILED: Final = 1
USED_WRONGLY: Final = 2
INTERRUPTED: Final = 130  # what a shell makes of SIGINT
TERMINATED: Final = 143  # of SIGTERM


def print_error(text: str) -> None:
    """Write an error on one line of stderr, with control characters escaped."""
    sys.stderr.write(error_line(text))
    sys.stderr.flush()


def error_line(text: str) -> str:
    """Return the line of stderr for an error."""
    from quire._common.terminal import escape_line

    return f"quire: {escape_line(' '.join(map(str.strip, text.splitlines())))}\n"


def error_text(error: Exception) -> str:
    """Return an error's text; that of the operating system with its path."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if _is_of_stdout(error):
        return f"cannot write to stdout: {error.strerror}"
    return f"{error.strerror}: path={error.filename}" if error.filename else str(error)


def _is_of_stdout(error: OSError) -> bool:
    """Return whether an error is of writing to stdout, which is given up then."""
    if error.filename != STDOUT:
        return False
    _drop_stdout()
    return True


def _drop_stdout() -> None:
    """Silence the interpreter's own complaint about stdout at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
