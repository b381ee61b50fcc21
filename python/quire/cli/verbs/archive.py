"""``quire archive``: finished cycles as plain Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quire.cli.exit_codes import print_error
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import Row, print_rows
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import row_format_option

if TYPE_CHECKING:
    from quire.archive import Failure, Report

_COLUMNS: Final = ("state", "topic", "cycle", "file", "messages", "bytes", "reason")


@click.command()
@click.argument("path", type=PATH)
@click.argument("dest", type=PATH, required=False)
@click.option(
    "--verify",
    is_flag=True,
    help="Verify the archive DEST, and compare it with the queue if the queue still exists.",
)
@click.option(
    "--rewrite",
    is_flag=True,
    help="Rewrite files of the archive PATH that earlier versions wrote, because the minimum and"
    " maximum in them ignore NaN.",
)
@click.option(
    "--schema",
    metavar="SCHEMA",
    help="Typed columns besides the payload: module:Name of a message class, an interface or a"
    " schema; a JSON file of names and types; or infer. Default: as in the previous run.",
)
@click.option("--method", metavar="NAME", help="Only the arguments of this method of an interface.")
@click.option(
    "--timestamp-field",
    metavar="NAME",
    help="The event time field for the column _timestamp, or history.",
)
@click.option(
    "--timestamp-unit",
    type=click.Choice(["s", "ms", "us", "ns"]),
    help="The unit of numbers in that field. Default: the unit that gives times between 1973 and"
    " 5138.",
)
@click.option(
    "--delete",
    is_flag=True,
    help="Delete archived cycles from the queue after comparing both byte by byte.",
)
@click.option(
    "--force",
    is_flag=True,
    help="With --delete: also delete cycles that named tailers and groups have not read.",
)
@click.option("--accept-loss", is_flag=True, help="Forget the cycles that are reported as lost.")
@row_format_option()
def archive(
    path: Path,
    dest: Path | None,
    *,
    verify: bool,
    rewrite: bool,
    style: str,
    **more: Any,  # noqa: ANN401
) -> None:
    """
    Archive finished cycles as Parquet files.

    PATH is a queue, or a directory of queues; DEST is the archive.

    Each cycle becomes a Parquet file DEST/topic=NAME/CYCLE.parquet with the indexes and bytes of
    its messages, read back and compared before it is renamed into place. Later runs add the cycles
    finished since. A cycle is finished when its file has an end-of-file marker, or when a later
    cycle has messages and the file has not changed for a second. Formats other than text have a row
    for each cycle that was archived, kept, not archived, lost or wrong.

    \b
    Examples:
      quire archive orders /archive/orders
      quire archive queues /archive --delete
      quire archive --verify /archive/orders
      quire archive --rewrite /archive/orders
    """  # noqa: D301 - click reads the backspace
    if find_spec("pyarrow") is None:
        raise click.ClickException("archives need pyarrow: pip install 'quire[arrow]'")
    if verify:
        if rewrite or any(more.values()):
            raise click.UsageError("--verify cannot be combined with other options")
        _verify(path, dest, style)
        return
    if rewrite:
        if dest is not None or any(more.values()):
            raise click.UsageError("--rewrite takes the archive alone, and no other options")
        _rewrite(path, style)
        return
    if dest is None:
        raise click.UsageError("DEST is missing: give the directory of the archive")
    if more["force"] and not more["delete"]:
        raise click.UsageError("--force requires --delete")
    from quire.archive import archive as run
    from quire.ranges.event_time import TimeField

    field, unit = more.pop("timestamp_field"), more.pop("timestamp_unit")
    if unit is not None and field is None:
        raise click.UsageError("--timestamp-unit requires --timestamp-field")
    more["timed"] = None if field is None else TimeField(field, unit)
    more["schema"] = _schema(more["schema"])
    with Progress() as progress, value_errors_as_usage():
        report = run(path, dest, progress=progress.show, **more)
    if style == "text":
        click.echo(_summary(report))
    else:
        reported = {"kept": report.kept, "failed": report.failed, "lost": report.lost}
        print_rows(style, _COLUMNS, [*_archived(report), *_rows(reported)])
    _print_failures("kept", report.kept)
    _fail("failed", report.failed, "lost", report.lost)


def _schema(place: str | None) -> Any:  # noqa: ANN401 - a schema, or a word
    """
    Return the schema that the option names.

    Raises:
        click.BadParameter: There is no schema at the place.

    """
    if place in {None, "infer"}:
        return place
    from quire.cli.reading.fields import load_schema

    return load_schema(str(place))


def _archived(report: Report) -> Iterator[Row]:
    for topic, entries in report.archived.items():
        for entry in entries:
            own = {name: getattr(entry, name) for name in ("cycle", "file", "messages")}
            yield {"state": "archived", "topic": topic, **own, "bytes": entry.size, "reason": None}


def _rows(reported: Mapping[str, Iterable[Failure]]) -> Iterator[Row]:
    for state, failures in reported.items():
        for it in failures:
            row = {"state": state, "topic": it.topic, "cycle": it.cycle, "reason": it.reason}
            yield dict.fromkeys(_COLUMNS) | row


def _verify(path: Path, dest: Path | None, style: str) -> None:
    from quire.archive import verify

    with Progress() as progress:
        found = verify(dest or path, None if dest is None else path, progress=progress.show)
    if style == "text":
        click.echo(
            f"verified={found.cycles} messages={found.messages} compared={found.compared}"
            f" wrong={len(found.failed)}"
        )
    else:
        print_rows(style, _COLUMNS, _rows({"wrong": found.failed}))
    _fail("wrong", found.failed)


def _rewrite(path: Path, style: str) -> None:
    from quire.archive import rewrite

    with Progress() as progress:
        found = rewrite(path, progress=progress.show)
    if style == "text":
        click.echo(f"rewritten={found.cycles} messages={found.messages} failed={len(found.failed)}")
    else:
        print_rows(style, _COLUMNS, _rows({"failed": found.failed}))
    _fail("failed", found.failed)


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


def _print_failures(what: str, failures: Iterable[Failure]) -> None:
    for failure in failures:
        print_error(f"{what}: {failure}")


def _fail(*reported: Any) -> None:  # noqa: ANN401 - pairs
    """
    Report failures, and exit with 1 if there are any.

    Raises:
        click.exceptions.Exit: Failures were reported.

    """
    for what, failures in zip(reported[::2], reported[1::2], strict=True):
        _print_failures(what, failures)
    if any(reported[1::2]):
        raise click.exceptions.Exit(1)
