"""``quire promote``: turn a replica into the source."""

from __future__ import annotations

from pathlib import Path

import click

from quire.cli.exit_codes import OK
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH
from quire.cli.shared_options import row_format_option


@click.command()
@click.argument("path", type=PATH)
@row_format_option()
def promote(path: Path, *, style: str) -> int:
    """
    Make a replica the source: from then on it accepts appends.

    A running sink of the replica ends first. A new epoch begins: sinks that have seen it refuse the
    old source, and the old source refuses appends once it learns of the epoch. Replicate from the
    new source with `quire replicate source`. An old source to which no such sink connects
    continues: stop it before you promote.

    \b
    Examples:
      quire promote copy
    """  # noqa: D301 - click reads the backspace
    from quire.replication import promote as promote_replica

    epoch = promote_replica(path)
    if style == "text":
        click.echo(f"promoted {path} epoch={epoch}")
    else:
        print_report(style, {"path": str(path), "epoch": epoch})
    return OK
