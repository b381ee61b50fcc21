"""``quire pipeline``: run or check the pipeline in a YAML file, or print the files' schema."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from quire._common.terminal import escape_line
from quire.cli.exit_codes import FAILED
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import PATH
from quire.cli.shared_options import check_json, row_format_option
from quire.cli.verb_group import WholeSummaries

if TYPE_CHECKING:
    from quire.errors import PipelineFileError
    from quire.pipeline.run_report.facts import Report
    from quire.pipeline.spec.parts import Pipeline

_SAFE_PATH: Final = "PYTHONSAFEPATH"
_PACKAGES: Final = ("jinja2", "pyarrow", "pydantic", "pyspark", "rich", "yaml")

_COLUMNS: Final = (
    "name",
    "kind",
    "rows_in",
    "rows_out",
    "quarantined",
    "dropped",
    "held",
    "duration_s",
)

_PROBLEM: Final = ("file", "line", "problem")

# The page's plots take seconds; texts are written more often.
_DRAWN_EVERY_S: Final = 30.0


@click.group(cls=WholeSummaries)
@click.pass_context
def pipeline(ctx: click.Context) -> None:
    """Run declarative pipelines on Spark: batch, streaming or scheduled."""
    ctx.with_resource(_safe_workers())


@contextmanager
def _safe_workers() -> Generator[None]:
    """Make Spark's Python workers, started with ``-m``, ignore the working directory."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


@pipeline.command()
@click.argument("file", type=PATH)
@click.option("--master", metavar="URL", help="The Spark cluster; this machine by default.")
@click.option(
    "--once",
    is_flag=True,
    help="Process all available data in a single batch, overriding the schedule in FILE.",
)
@click.option(
    "--schedule",
    metavar="WHEN",
    help="once, available-now or 'every 30s', overriding the schedule in FILE.",
)
@click.option(
    "--report",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write report.json, report.txt and report.html to this directory.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@row_format_option()
def run(  # noqa: PLR0913 - one for each option
    file: Path,
    master: str | None,
    schedule: str | None,
    folder: Path | None,
    *,
    once: bool,
    as_json: bool,
    style: str,
) -> None:
    """
    Run the pipeline in FILE and print a report.

    Each run continues where the last one ended. SIGINT and SIGTERM end it after the current batch.
    If it is killed, the next run repeats the interrupted batch and adds nothing twice. Formats
    other than text have a row for each source and step; --json has the whole report.

    \b
    Examples:
      quire pipeline run trades.yaml
      quire pipeline run trades.yaml --once --report build/trades
      quire pipeline run trades.yaml --schedule 'every 30s' --master spark://host:7077
    """  # noqa: D301 - click reads the backspace
    if once and schedule is not None:
        raise click.UsageError("--once and --schedule are mutually exclusive")
    check_json(style, as_json=as_json)
    found = _loaded(file, "once" if once else schedule)
    import quire.pipeline
    from quire.pipeline.runtime.runner import write_report

    stop = quire.pipeline.Stop()
    signals = nullcontext() if found.is_full else stop.on_signals()
    with signals, Progress() as progress:
        report = quire.pipeline.run(
            found,
            master=master,
            stop=stop,
            watch=_batch_and_part(progress),
            on_report=_report_writer(folder),
        )
    _print(report, style, as_json=as_json)
    if folder is not None:
        write_report(report, folder)
    if report.outcome == "failed":
        raise click.ClickException(report.errors[0])


def _report_writer(folder: Path | None) -> Callable[[Report], None]:
    """Return a function that writes a report, its page less often than its texts."""
    from quire.pipeline.runtime.runner import write_report

    drawn_at = -_DRAWN_EVERY_S

    def write(report: Report) -> None:
        nonlocal drawn_at
        if folder is not None:
            is_due = time.monotonic() >= drawn_at + _DRAWN_EVERY_S
            write_report(report, folder, page=is_due)
            drawn_at = time.monotonic() if is_due else drawn_at

    return write


def _batch_and_part(progress: Progress) -> Callable[[str], None]:
    """Return a function that shows the part of the pipeline that is done, with its batch."""
    batch = ""

    def show(part: str) -> None:
        nonlocal batch
        batch = part if part.startswith("batch ") else batch
        progress.show(part if part == batch else f"{batch}: {part}")

    return show


@pipeline.command()
@click.argument("file", type=PATH)
@row_format_option()
@click.pass_context
def check(ctx: click.Context, file: Path, *, style: str) -> None:
    """
    Check FILE without running it; list all problems.

    Also checks the paths of its sources, options of queues, SQL, rules and schemas. Formats other
    than text have a row for each problem, with its file and line.

    Example: quire pipeline check trades.yaml
    """
    _require_packages()
    from quire.errors import NoJavaError, PipelineFileError
    from quire.pipeline.runtime.before_run import check as checked

    try:
        found = checked(file)
    except PipelineFileError as error:
        if style == "text":
            raise click.ClickException(str(error)) from None
        print_rows(style, _PROBLEM, _problems(error))
        ctx.exit(FAILED)
    except NoJavaError as error:
        raise click.ClickException(str(error)) from None
    if style != "text":
        print_rows(style, _PROBLEM, ())
        return
    counts = f"{len(found.sources)} sources, {len(found.steps)} steps, {len(found.sinks)} sinks"
    click.echo(escape_line(f"{file}: {counts}, {found.schedule}"))


def _problems(error: PipelineFileError) -> Iterator[dict[str, object]]:
    """Yield a row for each problem."""
    for problem in error.problems:
        line, _, text = problem.partition(": ")
        yield {"file": error.file, "line": int(line), "problem": text}


@pipeline.command()
def schema() -> None:
    """
    Print the JSON schema of pipeline files.

    Editors use it to complete and check them.

    Example: quire pipeline schema > pipeline.schema.json
    """
    _require_packages()
    from quire.pipeline.spec.validation import schema as schema_of_files

    click.echo(json.dumps(schema_of_files(), indent=2))


def _require_packages() -> None:
    """
    Check that pipelines can be loaded.

    Raises:
        click.ClickException: A package that pipelines need is missing.

    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"pipelines need {', '.join(missing)}: pip install 'quire[pipeline]'"
        )


def _loaded(file: Path, schedule: str | None) -> Pipeline:
    """
    Load the file.

    Raises:
        click.ClickException: A package is missing, or the pipeline file is not valid.

    """
    _require_packages()
    from quire.errors import PipelineFileError
    from quire.pipeline.spec.loader import load, scheduled

    try:
        found = load(file)
        return found if schedule is None else scheduled(found, schedule)
    except PipelineFileError as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--schedule") from None


def _print(report: Report, style: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(report.to_json(), nl=False)
        return
    if style != "text":
        rows = ({name: getattr(step, name) for name in _COLUMNS} for step in report.steps)
        print_rows(style, _COLUMNS, rows)
        return
    from rich.console import Console

    from quire.pipeline.run_report.as_text import show

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    show(report, Console(highlight=False, width=width))
