"""``quire archive``: finished cycles as plain Parquet files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quire.cli.arguments import PATH
from quire.cli.errors import print_error
from quire.cli.progress import Progress

if TYPE_CHECKING:
    from quire.archive import Failure, Report


@click.command()
@click.argument("path", type=PATH)
@click.argument("dest", type=PATH, required=False)
@click.option(
    "--verify",
    is_flag=True,
    help="Read the archive DEST through, and compare it with the queue where that still is.",
)
@click.option(
    "--schema",
    metavar="SCHEMA",
    help="Typed columns beside the payload: module:Name of a message class, an interface or a"
    " schema; a JSON file of names and types; or infer. Without it: as in the run before.",
)
@click.option("--method", metavar="NAME", help="Of an interface: the arguments of this one alone.")
@click.option(
    "--timestamp-field",
    metavar="NAME",
    help="The field that a column _timestamp is taken from, or history.",
)
@click.option(
    "--timestamp-unit",
    type=click.Choice(["s", "ms", "us", "ns"]),
    help="What a number there counts since 1970. Without it: what puts it between 1973 and 5138.",
)
@click.option(
    "--delete",
    is_flag=True,
    help="Delete from the queue what the archive holds, once both are compared byte by byte.",
)
@click.option("--force", is_flag=True, help="With --delete: also what named tailers have not read.")
@click.option("--accept-loss", is_flag=True, help="Forget the cycles that are reported as lost.")
def archive(path: Path, dest: Path | None, *, verify: bool, **more: Any) -> None:  # noqa: ANN401
    """
    Archive the finished cycles of the queue at PATH, or of each queue below it, in DEST.

    Each becomes a Parquet file DEST/topic=NAME/CYCLE.parquet with the messages' indexes and bytes.
    It is read again and compared before it gets its name. A second run adds what was finished
    since. A cycle is finished when a later one has messages, or its file an end-of-file marker.

    \b
    Examples:
      quire archive orders /archive/orders
      quire archive queues /archive --delete
      quire archive --verify /archive/orders
    """  # noqa: D301 - click reads the backspace
    if find_spec("pyarrow") is None:
        raise click.ClickException("archives need pyarrow: pip install 'quire[arrow]'")
    if verify:
        if any(more.values()):
            raise click.UsageError("--verify changes nothing: it goes with no other option")
        _verify(path, dest)
        return
    if dest is None:
        raise click.UsageError("where to? give DEST, the directory of the archive")
    if more["force"] and not more["delete"]:
        raise click.UsageError("--force says what to delete: give --delete, too")
    from quire.archive import archive as run
    from quire.ranges.event_time import TimeField

    field, unit = more.pop("timestamp_field"), more.pop("timestamp_unit")
    more["timed"] = None if field is None else TimeField(field, unit)
    more["schema"] = _schema(more["schema"])
    with Progress() as progress:
        report = run(path, dest, progress=progress.show, **more)
    click.echo(_summary(report))
    _tell("kept", report.kept)
    _fail("failed", report.failed, "lost", report.lost)


def _schema(place: str | None) -> Any:  # noqa: ANN401 - a schema, or a word
    """
    Return the schema that was asked for.

    Raises:
        click.BadParameter: There is none at this place.

    """
    if place in {None, "infer"}:
        return place
    from quire.arrow.schema_loader import load_schema

    sys.path.insert(0, "")  # modules beside the caller are found, as by python -m
    try:
        return load_schema(str(place))
    except (ValueError, TypeError, ImportError, AttributeError, OSError) as error:
        raise click.BadParameter(f"no schema here: {place} ({error})") from error
    finally:
        sys.path.remove("")


def _verify(path: Path, dest: Path | None) -> None:
    from quire.archive import verify

    with Progress() as progress:
        found = verify(dest or path, None if dest is None else path, progress=progress.show)
    click.echo(
        f"verified={found.cycles} messages={found.messages} compared={found.compared}"
        f" wrong={len(found.failed)}"
    )
    _fail("wrong", found.failed)


def _summary(report: Report) -> str:
    parts: dict[str, Any] = {
        "archived": len(report.entries),
        "messages": report.messages,
        "bytes": report.bytes,
        "of": report.payload_bytes,
        "present": report.present,
        "unfinished": report.unfinished,
    }
    if report.deleted or report.kept:
        parts |= {"deleted": report.deleted, "kept": len(report.kept)}
    if report.misfits:
        parts["misfits"] = report.misfits
    return " ".join(f"{name}={value}" for name, value in parts.items())


def _tell(what: str, failures: Iterable[Failure]) -> None:
    for failure in failures:
        print_error(f"{what}: {failure}")


def _fail(*told: Any) -> None:  # noqa: ANN401 - pairs
    """
    Tell what went wrong.

    Raises:
        click.exceptions.Exit: Something did.

    """
    for what, failures in zip(told[::2], told[1::2], strict=True):
        _tell(what, failures)
    if any(told[1::2]):
        raise click.exceptions.Exit(1)
