"""``quire read``: print messages of a queue: all, a range, the last ones, or as they arrive."""

from __future__ import annotations

from typing import Any, Final

import click

from quire.cli.parameters import QUEUE, reference_of, replaced, zone_of
from quire.cli.reading.request import Request, show
from quire.cli.reading.stages import made
from quire.cli.remote_options import Place
from quire.cli.shared_options import (
    filter_options,
    format_option,
    on_damage_option,
    print_lost,
    range_options,
)

FORMATS: Final = ("yaml", "json", "jsonl", "text", "csv", "arrow", "hex", "raw")
_NOT_TOGETHER: Final = (
    ("follow", "reverse"),
    ("follow", "to"),
    ("from", "last"),
    ("search", "from"),
    ("search", "last"),
    ("metadata", "reverse"),
    ("metadata", "where"),
    ("metadata", "columns"),
    ("metadata", "interface"),
    ("named", "from"),
    ("named", "last"),
    ("named", "search"),
    ("named", "reverse"),
    ("named", "metadata"),
)


class _OrJava(click.Command):
    """A command that leaves the options after ``--java`` to another one."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - of click
    ) -> click.Context:
        """Take the other command, where it is asked for."""
        if args[:1] == ["--java"]:
            from quire.cli.reading.java_reader import java_reader

            return java_reader.make_context(f"{info_name} --java", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_OrJava)
@click.argument("path", type=QUEUE)
@click.option("-f", "--follow", is_flag=True, help="Wait for new messages until interrupted.")
@click.option(
    "-n", "--last", type=click.IntRange(min=0), metavar="N", help="Start N messages before the end."
)
@range_options
@click.option("--start", "_start", hidden=True, expose_value=False, callback=replaced)
@click.option("--end", "_end", hidden=True, expose_value=False, callback=replaced)
@click.option("--count", type=click.IntRange(min=0), metavar="N", help="Stop after N messages.")
@click.option("--reverse", is_flag=True, help="Newest first.")
@filter_options
@click.option(
    "--schema", metavar="SCHEMA", help="Types of the fields: module:Name or a file; else inferred."
)
@format_option(*FORMATS, default=FORMATS[0])
@click.option("--zone", type=zone_of, metavar="ZONE", help="Time zone in which columns show times.")
@on_damage_option()
@click.option("--metadata", is_flag=True, help="Show metadata documents too.")
@click.option("--no-index", is_flag=True, help="Leave out the indexes.")
@click.option(
    "--named", metavar="TAILER", help="Resume at the position of this named tailer, and move it."
)
@click.option(
    "--interface",
    type=reference_of,
    metavar="MODULE:NAME",
    help="Only calls of this interface, decoded by its types.",
)
@click.option("--history", is_flag=True, help="With --interface: show the history of messages.")
@click.option(
    "--limiter",
    type=reference_of,
    metavar="MODULE:NAME",
    help="Stop before the first message for which this function returns true.",
)
@click.option("--limiter-arg", metavar="TEXT", help="The argument that makes the limiter.")
@click.option(
    "--search",
    type=reference_of,
    metavar="MODULE:NAME",
    help="Start at the message that this comparator finds by binary search.",
)
@click.option("--search-arg", metavar="TEXT", help="The argument that makes the comparator.")
def read(path: Place, **more: Any) -> int:  # noqa: ANN401 - click checks them
    """
    Print the messages of a queue, or of one of its files.

    PATH may be a queue of any format, one file or a copied day of a queue, or a directory of
    queues; or quire://HOST:PORT/QUEUE, or quire://HOST:PORT for all queues of that server. Without
    --follow, it stops at the message that was last when it started. Patterns are matched against
    the text as printed, without the index; --last counts matching messages. For POINT, see replay.

    An EXPRESSION compares fields: =, !=, <, <=, >, >=, ~ (regular expression), in (...), is null,
    with and, or, not and parentheses. Text is in quotes; trade.price is the field price within
    trade; index is the message's index, whatever fields it has.

    \b
    yaml   as Java's tools print it
    json   an array of objects, each with its index and message
    jsonl  one such object per line
    text   one line per message: its text, or its bytes as UTF-8
    csv    one line per message with its fields, after a heading
    arrow  an Arrow IPC stream of the fields
    hex    one line per message: its bytes
    raw    the bytes alone, one message after the other

    \b
    Examples:
      quire read orders --last 10 --follow
      quire read orders --include '^symbol: EUR' --exclude test
      quire read orders --where "symbol ~ '^EUR' and size >= 100" --columns symbol,price
      quire read orders --from 0x4d1900000000 --count 3 --format jsonl
      quire read orders --from 2024-01-15 --to 2024-01-16 --format csv > monday.csv
      quire read quire://127.0.0.1:7000/orders --last 10 --token-file reader.token
      quire read --java -d orders -m 10   (options of ChronicleReaderMain: --java --help)
    """  # noqa: D301 - click reads the backspace
    check_options(more)
    more["limiter"] = _made(more, "limiter")
    more["search"] = _made(more, "search")
    if (place := more.pop("schema")) is not None:
        from quire.cli.reading.fields import load_schema

        more["schema"] = load_schema(place)
    more["start"], more["end"] = more.pop("from"), more.pop("to")
    more["limit"] = more.pop("count")
    more["skips_damage"] = more.pop("on_damage") == "skip"
    return print_lost(show(path, Request(with_index=not more.pop("no_index"), **more)))


def _made(options: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - a function
    argument = options.pop(f"{name}_arg")
    if options[name] is None:
        if argument is not None:
            raise click.UsageError(f"--{name}-arg needs --{name}")
        return None
    found = made(options[name], argument)
    if not callable(found):
        raise click.UsageError(f"--{name} is not a function: {found!r:.80}")
    return found


def check_options(options: dict[str, Any]) -> None:
    """
    Look for options that contradict one another.

    Raises:
        click.UsageError: Two options contradict one another.

    """
    for pair in _NOT_TOGETHER:
        if all(options[name] is not None and options[name] is not False for name in pair):
            first, second = pair
            raise click.UsageError(f"--{first} and --{second} do not go together")
    style = options["style"]
    if options["follow"] and style == "json":
        raise click.UsageError("--follow never ends the array of json: use --format jsonl")
    if options["history"] and options["interface"] is None:
        raise click.UsageError("--history needs --interface: elsewhere it is part of the message")
