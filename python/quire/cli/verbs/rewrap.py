"""``quire rewrap``: wraps the data keys of an encrypted queue by another key."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.output.reports import print_report
from quire.cli.output.row_formats import counted
from quire.cli.parameters import PATH
from quire.cli.shared_options import row_format_option


@click.command()
@click.argument("path", type=PATH)
@click.option("--key-file", type=PATH, required=True, help="The key that wraps the data keys now.")
@click.option(
    "--new-key-file", type=PATH, required=True, help="The key to wrap the data keys with."
)
@row_format_option()
def rewrap(path: Path, *, key_file: Path, new_key_file: Path, style: str) -> None:
    """
    Wrap the data keys of an encrypted queue with another key.

    Changes no message. From then on the old key cannot open the queue, but with an older copy of
    keys.quire it still can. A key file holds 32 bytes, raw, in hexadecimal or in base64, or a key
    ring, whose current key is used.

    \b
    Examples:
      head -c 32 /dev/urandom > new
      quire rewrap orders --key-file key --new-key-file new
    """  # noqa: D301 - click reads the backspace
    old, new = quire.KeyRing.from_file(key_file), quire.KeyRing.from_file(new_key_file)
    count = quire.maintenance.rewrap(path, key=old, new_key=new)
    if style == "text":
        click.echo(f"{counted(count, 'data key')} wrapped by the new key")
    else:
        print_report(style, {"data_keys": count})
