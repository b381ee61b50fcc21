"""``quire read --java``: the options of Java's ``ChronicleReaderMain``, and its output."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from quire.cli.parameters import PATH, index_of, pattern_of, reference_of, zone_of
from quire.cli.reading.request import Request, show
from quire.cli.reading.stages import made

_STYLES: Final = {"TEXT": "yaml", "YAML": "yaml", "YAML_ONLY": "yaml", "JSON": "jsonl"}


@click.command("read", add_help_option=False)
@click.help_option("-h", "--help")
@click.argument("path", type=PATH, required=False)
@click.option("-d", "directory", type=PATH, help="Directory of the queue.")
@click.option("-i", "include", type=pattern_of, multiple=True, help="Only records that match.")
@click.option("-e", "exclude", type=pattern_of, multiple=True, help="Leave out records that match.")
@click.option("-f", "follow", is_flag=True, help="Wait for new records.")
@click.option("-m", "last", type=click.IntRange(min=0), help="Records from the end.")
@click.option("-n", "start", type=index_of, help="Start at this index.")
@click.option("-x", "limit", type=click.IntRange(min=0), help="Stop after this many records.")
@click.option("-k", "reverse", is_flag=True, help="Newest first.")
@click.option("-l", "squash", is_flag=True, help="Each record on one line.")
@click.option("-s", "no_index", is_flag=True, help="Leave out the indexes, as Java does.")
@click.option("-w", "wire_type", type=click.Choice([*_STYLES]), help="Output format.")
@click.option("-r", "interface", type=reference_of, help="Interface of a method writer.")
@click.option("-g", "history", is_flag=True, help="Show the history of messages, with -r.")
@click.option("-b", "search", type=reference_of, help="Comparator for a binary search.")
@click.option("-a", "search_arg", help="The argument that makes the comparator.")
@click.option("-cbl", "limiter", type=reference_of, help="Content-based limiter.")
@click.option("-cblArg", "limiter_arg", help="The argument that makes the limiter.")
@click.option("-named", "named", help="Resume at this named tailer, and move it.")
@click.option("-z", "is_local", is_flag=True, help="Show times of calls in local time, with -r.")
def java_reader(path: Path | None, directory: Path | None, **more: Any) -> None:  # noqa: ANN401
    """
    Print records with the options of ChronicleReaderMain.

    Classes are Python's, as module:Name. Other options of read are not understood.

    \b
    Example:
      quire read --java -d orders -m 10 -i EURUSD
    """  # noqa: D301 - click reads the backspace
    place = directory or path
    if place is None or (directory is not None and path is not None):
        raise click.UsageError("give one directory: -d DIRECTORY")
    for name in ("limiter", "search"):
        argument = more.pop(f"{name}_arg")
        if more[name] is not None:
            more[name] = made(more[name], argument)
    if more["reverse"]:
        # Java begins at -n then, ignores -m, and waits after the first record, where none comes.
        begin, more["last"], more["follow"] = more.pop("start"), None, False
        more["end"] = None if begin is None else begin + 1
    if more.pop("is_local"):
        more["zone"] = zone_of("local")
    more["history"] = more["history"] and more["interface"] is not None
    style = _STYLES[more.pop("wire_type") or "TEXT"]
    show(place, Request(style=style, with_index=not more.pop("no_index"), is_java=True, **more))
