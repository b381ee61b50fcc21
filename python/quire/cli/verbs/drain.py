"""``quire drain``: the drainer of asynchronous appends as a process of its own."""

from __future__ import annotations

import time
from pathlib import Path

import click

import quire
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.reading.presence import Presence
from quire.formats.adapters import require_journal
from quire.formats.detection import format_of

_LOOK_S = 1.0
_RING = "async.ring"


@click.command()
@click.argument("path", type=PATH)
@click.option("--once", is_flag=True, help="Exit once everything in the ring has been appended.")
@click.option(
    "--again",
    is_flag=True,
    help="With --once: append again what a dead drainer may already have appended, if the queue's"
    " copy is no longer readable.",
)
def drain(path: Path, *, once: bool, again: bool) -> None:
    """
    Append the messages that asynchronous appends have put into a queue's ring.

    Programs use the ring with buffer_mode="async". Runs until interrupted (Ctrl-C). If another
    process is draining, it takes over when that process ends.

    \b
    Examples:
      quire drain orders
      quire drain orders --once
      quire drain orders --once --again
    """  # noqa: D301 - click reads the backspace
    if again and not once:
        raise click.UsageError("--again needs --once")
    with value_errors_as_usage():
        require_journal(path, "a ring")
        if once and format_of(str(path)) is not None and not (path / _RING).exists():
            return
        presence = Presence([path])
        with quire.open(path, create=False, force_unlock="never", buffer_mode="async") as queue:
            while not once:
                time.sleep(_LOOK_S)
                presence.check()
            if queue.ring:
                queue.ring.flush(again=again)
