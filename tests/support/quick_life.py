"""
A life of a Quick-Queue in the build with fault points: two writers, restarts, a fault.

Says each index it was given, then how often each point was hit. The life after it has no fault.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path

PAGE_BYTES = 64
ROUNDS = 2
MESSAGES = 4
OUT = 3  # where a child says what it did
PRODUCERS = {"single": (None,), "shared": ("AA0", "BB1")}


def live(path: Path, form: str, name: str) -> None:
    """Write with each writer in turn, and open them again in between."""
    for number in range(ROUNDS):
        with quire.open(path, format="quick-queue", page_bytes=PAGE_BYTES) as queue:
            with ExitStack() as opened:
                writers = [
                    opened.enter_context(queue.appender(producer)) for producer in PRODUCERS[form]
                ]
                for message in range(MESSAGES * len(writers)):
                    writer = writers[message % len(writers)]
                    payload = f"{name} {number} {message} ".encode() * (message + 1)
                    say(writer.write_bytes(payload), payload.decode())
                queue.force()
            with queue.tailer() as tailer:
                tailer.read_many(1000)


def say(*parts: object) -> None:
    """Write a line that the parent reads even if the next step is the last."""
    os.write(OUT, (json.dumps(parts) + "\n").encode())


def lived(path: str, form: str, name: str, fault: str) -> None:
    """Live with a fault, in this process."""
    native = vars(quire._native)
    native["set_fault"](fault)
    try:
        live(Path(path), form, name)
    except (OSError, quire.QuireError) as error:
        say("failed", str(error))
    counted = dict(native["fault_hits"]())
    say("hits", {point: hit for point, hit in counted.items() if point.startswith("quick-queue.")})


def serve() -> None:
    """Live each life that is asked for in a child, and say how it went."""
    for line in sys.stdin:
        receiving, sending = os.pipe()
        pid = os.fork()
        if not pid:
            os.dup2(sending, OUT)
            lived(*json.loads(line))
            os._exit(0)
        os.close(sending)
        with os.fdopen(receiving) as pipe:
            said = [json.loads(it) for it in pipe]
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(json.dumps([code, said]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a build without optimisation
    import quire
    import quire._native

    serve()
