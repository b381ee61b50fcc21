"""``quire prove``: the proof that a message is in a queue."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.parameters import PATH, index_of


@click.command()
@click.argument("path", type=PATH)
@click.argument("index", type=index_of)
def prove(path: Path, index: int) -> None:
    """
    Write a proof that a message is in a sealed queue.

    The proof, some hundred bytes on stdout, leads from the hash of the message to the newest signed
    checkpoint. It holds nothing of any message. `quire check-proof` checks it without the queue.

    \b
    Examples:
      quire prove orders 0x4d1900000000 > proof
      quire check-proof proof --trust key.pub
    """  # noqa: D301 - click reads the backspace
    click.echo(quire.maintenance.prove(path, index), nl=False)
