"""The entry point of the command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from quire._native import reported_losses
from quire.cli.exit_codes import FAILED, INTERRUPTED, OK, USED_WRONGLY, error_text, print_error
from quire.cli.streams import mark_stdout, open_missing_streams
from quire.errors import QuireError, SettingError


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command line and return its exit code.

    That is 0, 1 (it failed, or messages were deleted before it read them), 2 (used wrongly) or 130
    (interrupted). Where nobody reads stdout any more, as after ``| head``, click ends the process:
    without a word, and with 1.

    Args:
        arguments: What follows the command's name; None means those of this process.

    """
    open_missing_streams()
    mark_stdout()
    if find_spec("click") is None:
        return _fail("the command needs click: pip install 'quire[cli]'")
    from quire.cli.verb_group import run

    losses = reported_losses()
    try:
        code = run(sys.argv[1:] if arguments is None else list(arguments))
        return FAILED if code == OK and reported_losses() > losses else code
    except KeyboardInterrupt:
        return INTERRUPTED
    except SettingError as error:
        print_error(str(error))
        return USED_WRONGLY
    except (QuireError, OSError) as error:
        return _fail(error_text(error))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        return _fail("this needs pyarrow: pip install 'quire[arrow]'")


def _fail(message: str) -> int:
    print_error(message)
    return FAILED
