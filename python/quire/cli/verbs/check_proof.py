"""``quire check-proof``: whether a proof leads to a signed checkpoint."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

import quire
from quire.cli.output.reports import print_report
from quire.cli.output.stat_text import hex_text, time_text
from quire.cli.parameters import PATH
from quire.cli.shared_options import row_format_option

_LONGEST: Final = 1 << 16
_LONGEST_MESSAGE: Final = 1 << 30


@click.command("check-proof")
@click.argument("proof", type=PATH)
@click.option("--trust", type=PATH, required=True, help="The public key (PEM) of the signer.")
@click.option("--message", type=PATH, help="A file with the message, as stored.")
@row_format_option()
def check_proof(proof: Path, *, trust: Path, message: Path | None, style: str) -> None:
    """
    Check a proof that a message is in a queue.

    Needs the proof and the public key, but neither the queue nor its host. --message checks that a
    file holds the proven message: the bytes as stored, which `quire prove --message-to` writes. The
    exit code is 1 if the proof is invalid.

    \b
    Examples:
      quire check-proof proof --trust key.pub
      quire check-proof proof --trust key.pub --message order.bin
    """  # noqa: D301 - click reads the backspace
    content = None if message is None else _content(message, _LONGEST_MESSAGE)
    found = quire.maintenance.check_proof(_content(proof, _LONGEST), trust=trust, message=content)
    if style != "text":
        facts = {
            "queue": str(found.queue),
            "index": hex_text(found.index),
            "checkpoint": found.checkpoint,
            "time": time_text(found.time_ms),
            "key": str(found.key),
        }
        print_report(style, facts)
        return
    what = "a message" if message is None else "the message"
    click.echo(f"{what} is at index {found.index:#x} of queue {found.queue}")
    time = datetime.fromtimestamp(found.time_ms / 1000, UTC)
    click.echo(f"checkpoint {found.checkpoint} at {time:%Y-%m-%dT%H:%M:%SZ} by {found.key}")


def _content(file: Path, limit: int) -> bytes:
    with file.open("rb") as opened:
        found = opened.read(limit + 1)
    if len(found) > limit:
        raise click.BadParameter(f"the file is too long: file={file} limit={limit}")
    return found
