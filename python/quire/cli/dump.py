"""``quire dump``: every document of every file, as it lies there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from quire._formats import uncompressed
from quire._native import Dump
from quire._terminal import escape_controls, escape_line
from quire.cli.arguments import PATH
from quire.cli.dump_older import is_older, texts_of
from quire.cli.errors import error_text
from quire.cli.output import Output
from quire.errors import NotAQueueError, QuireError

_SUFFIXES = (".cq4", ".cq4t")
_OF_VERSION_4 = "directory-listing.cq4t"


@click.command()
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
def dump(paths: tuple[Path, ...]) -> None:
    """
    Print every document of queues or single files.

    Positions, states and payloads, as Java's DumpMain prints them: roll files, their indexes, and
    the table of the queue. A damaged file is shown up to the damage, and the others after it.
    Of a Vanilla Chronicle or a Quick-Queue: each message with its index and length, cycle by
    cycle or page by page; damaged entries are shown and passed over.

    \b
    Examples:
      quire dump orders | less
      quire dump orders/20240115F.cq4 orders/metadata.cq4t
    """  # noqa: D301 - click reads the backspace
    output = Output()
    wrong: list[str] = []
    for path in paths:
        if is_older(path):
            for text in texts_of(path, wrong):
                output.write(text.encode("utf-8", "backslashreplace"))
            continue
        for file, has_title in _files(path):
            if has_title:
                output.write(f"## {escape_line(file.name)}\n".encode())
            try:
                for piece in Dump(file):
                    output.write(_shown(piece) if output.is_terminal else piece)
            except (QuireError, OSError) as error:
                if isinstance(error, BrokenPipeError):
                    raise
                output.write(f"# {escape_line(error_text(error))}\n".encode())
                wrong.append(error_text(error))
    output.flush()
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise click.ClickException(wrong[0] + more)


def _files(path: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files of a queue by name, or the file itself, and whether to name it."""
    if not path.is_dir():
        path.stat()  # says so itself if there is nothing
        yield path, False
        return
    found = (file for file in path.iterdir() if file.name != _OF_VERSION_4)
    files = sorted(file for file in found if Path(uncompressed(file.name)).suffix in _SUFFIXES)
    if not files:
        raise NotAQueueError(f"not a Chronicle Queue 5 queue: no *.cq4 file path={path}")
    for file in files:
        yield file, True


def _shown(piece: bytes) -> bytes:
    return escape_controls(piece.decode()).encode()
