"""
Run a verb on a small queue, then timed on a large one: what it costs once its modules are loaded.

    python -m bench.verb OUT SMALL LARGE VERB [OPTION]...

What the verb prints goes to OUT, that of the large queue alone stays there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.task import Outcome, Stopwatch
from quire.cli import main


def run() -> int:
    """Run the verb twice and print the outcome."""
    out, small, large, verb, *options = sys.argv[1:]
    answer = os.dup(1)
    for path in (small, large):
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, 1)
        os.close(handle)
        with Stopwatch() as watch:
            code = main([verb, path, *options])
            sys.stdout.flush()
        if code:
            return code
    outcome = Outcome(watch.nanos, watch.cpu_nanos, 1, Path(out).stat().st_size)
    os.write(answer, f"{outcome.to_json()}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(run())
