"""``quire seal``: hashes and a checkpoint of what a queue holds, so that changes are noticed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import quire
from quire.cli.output.reports import print_report
from quire.cli.output.row_formats import counted
from quire.cli.parameters import PATH
from quire.cli.shared_options import row_format_option

if TYPE_CHECKING:
    from quire.maintenance.sealing import Seal


@click.command()
@click.argument("path", type=PATH)
@click.option("--sign", type=PATH, help="An Ed25519 private key (PEM) to sign with.")
@click.option("--checkpoint", type=PATH, help="Write the checkpoint to this file.")
@click.option("--older", is_flag=True, help="Also seal cycles that appeared between sealed ones.")
@row_format_option()
def seal(
    path: Path, *, sign: Path | None, checkpoint: Path | None, older: bool, style: str
) -> None:
    """
    Seal the messages of a queue, so that `quire verify` detects changes.

    Stores hashes of the messages appended since the last seal, beside each cycle and in
    seals.quire. Java ignores these files; messages that Java appended are sealed too. The queue may
    be in use: messages appended meanwhile are part of the next seal. Keep the file of --checkpoint
    where nobody with write access to the queue can change it: it reveals a rollback of the whole
    queue. A cycle that appears between sealed ones is left out, with a warning, unless --older
    accepts it. docs/integrity.md says what is protected.

    \b
    Examples:
      quire seal orders
      openssl genpkey -algorithm ed25519 -out key.pem
      openssl pkey -in key.pem -pubout -out key.pub
      quire seal orders --sign key.pem --checkpoint /audit/orders.checkpoint
    """  # noqa: D301 - click reads the backspace
    made = quire.maintenance.seal(path, sign=sign, checkpoint=checkpoint, older=older)
    if style != "text":
        names = ("number", "cycles", "root", "key")
        print_report(style, dict.fromkeys(names) if made is None else _facts(made))
        return
    if made is None:
        click.echo("nothing to seal: the queue has no messages")
        return
    by = "" if made.key is None else f", signed by {made.key}"
    click.echo(f"checkpoint {made.number}: {counted(made.cycles, 'cycle')}{by}")
    click.echo(f"root {made.root.hex()}")


def _facts(made: Seal) -> dict[str, object]:
    return {
        "number": made.number,
        "cycles": made.cycles,
        "root": made.root.hex(),
        "key": made.key,
    }
