"""
Lives that a process of the build with fault points forks, one for each line on its input.

A life says what it did on a pipe, also if its next step is the last one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import quire
import quire._native

OUT = 3  # where a child says what it did


def say(*parts: object) -> None:
    """Write a line that the parent reads even if the next step is the last."""
    os.write(OUT, (json.dumps(parts) + "\n").encode())


def serve(live: Callable[[Path, str, str], None]) -> None:
    """Live each life that is asked for in a child, and say how it went."""
    for line in sys.stdin:
        receiving, sending = os.pipe()
        pid = os.fork()
        if not pid:
            os.dup2(sending, OUT)
            _lived(live, *json.loads(line))
            os._exit(0)
        os.close(sending)
        with os.fdopen(receiving) as pipe:
            said = [json.loads(it) for it in pipe]
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(json.dumps([code, said]) + "\n")
        sys.stdout.flush()


def _lived(
    live: Callable[[Path, str, str], None], path: str, form: str, name: str, fault: str
) -> None:
    native = vars(quire._native)
    native["set_fault"](fault)
    try:
        live(Path(path), form, name)
    except (OSError, quire.QuireError) as error:
        say("failed", str(error))
    say("hits", dict(native["fault_hits"]()))
