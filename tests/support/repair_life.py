"""A repair in the build with fault points, for each line on its input: see `life_server.py`."""

from __future__ import annotations

import logging
from pathlib import Path

import quire
from life_server import serve


def live(path: Path, form: str, name: str) -> None:
    """Repair the queue."""
    del form, name
    logging.disable()
    quire.repair(path, dry_run=False)


if __name__ == "__main__":
    serve(live)
