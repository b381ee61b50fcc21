"""The process in which one Python measurement runs: ``python -m bench.worker TASK``."""

from __future__ import annotations

import sys
from importlib import import_module

from bench.task import Task


def main() -> None:
    """Run the task of the command line and print its outcome as the last line."""
    task = Task.from_json(sys.argv[1])
    outcome = import_module(f"bench.adapters.{task.system}").run(task)
    if outcome is not None:
        print(outcome.to_json(), flush=True)


if __name__ == "__main__":
    main()
