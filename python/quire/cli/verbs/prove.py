"""``quire prove``: the proof that a message is in a queue."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.parameters import PATH, index_of


@click.command()
@click.argument("path", type=PATH)
@click.argument("index", type=index_of)
@click.option("--message-to", type=PATH, help="Write the message, as it is stored, to this file.")
def prove(path: Path, index: int, *, message_to: Path | None) -> None:
    """
    Write a proof that a message is in a sealed queue.

    The proof, a few hundred bytes on stdout, leads from the hash of the message to the newest
    signed checkpoint. It reveals no message content. `quire check-proof` checks it without the
    queue.

    The proof covers the message as stored: encrypted or compressed if the queue is. --message-to
    writes these bytes, for `quire check-proof --message`.

    \b
    Examples:
      quire prove orders 0x4d1900000000 > proof
      quire check-proof proof --trust key.pub
      quire prove vault 0x4d1900000000 --message-to stored > proof
      quire check-proof proof --trust key.pub --message stored
    """  # noqa: D301 - click reads the backspace
    click.echo(quire.maintenance.prove(path, index, message_to=message_to), nl=False)
