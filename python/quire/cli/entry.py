"""Where the command starts: exit codes, and one line on stderr for what went wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from quire.errors import QuireError

OK: Final = 0
FAILED: Final = 1
USED_WRONGLY: Final = 2
INTERRUPTED: Final = 130  # what a shell makes of SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command line and return its exit code.

    That is 0, 1 (it failed), 2 (used wrongly) or 130 (interrupted). Where nobody reads stdout any
    more, as after ``| head``, click ends the process: without a word, and with 1.

    Args:
        arguments: What follows the command's name; None means those of this process.

    """
    if find_spec("click") is None:
        return _fail("the command needs click: pip install 'quire[cli]'")
    from quire.cli.group import run

    try:
        return run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (QuireError, OSError) as error:
        return _fail(told(error))


def told(error: Exception) -> str:
    """Return an error's words, those of the system as the others: with the path behind."""
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
    """Have nothing more said at the interpreter's end about what cannot be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _fail(message: str) -> int:
    from quire.cli.output import complain

    complain(message)
    return FAILED
