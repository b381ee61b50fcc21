"""Counts and reports of runs that go on: what failed does not count, and nothing grows."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import quire
from quire.errors import StepError
from quire.pipeline import PipelineError, Report, Stop, load
from quire.pipeline.run_report import row_counts
from quire.pipeline.run_report.facts import BatchReport
from quire.pipeline.run_report.row_counts import Counted, Tally
from quire.pipeline.run_report.spark_progress import KEPT, Progress
from quire.pipeline.runtime.input_tables import mixes_topics, streams
from quire.pipeline.runtime.micro_batch import Batch
from quire.pipeline.runtime.runner import _Run  # pyright: ignore[reportPrivateUsage]
from quire.pipeline.runtime.state import State
from quire.pipeline.spec.parts import Deduplicate, Pipeline

TEXT = """\
pipeline: small
sources:
  trades: {format: quire, path: trades}
steps:
  clean: {from: trades, expect: {positive: n > 0}}
sinks:
  - {from: clean, format: parquet, path: out}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "pipeline.yaml").write_text(TEXT, "utf-8")
    return load(tmp_path / "pipeline.yaml")


class Observed:
    """What Spark tells of a frame; None: nothing."""

    def __init__(self, rows: int | None) -> None:
        self.get = {"rows": rows}
        future = SimpleNamespace(isCompleted=lambda: rows is not None)
        self._jo = SimpleNamespace(future=lambda: future)


def counted(tally: Tally, pipeline: Pipeline, read: int | None, wrote: int | None) -> None:
    """Count a batch of *read* rows, two of which break the rule."""
    tally.begin()
    observed = cast("dict[str, Any]", tally._observed)  # pyright: ignore[reportPrivateUsage]
    observed |= {"trades": Observed(read), "sink": Observed(wrote)}
    tally.checked("clean", Counted(10, 2, 0, {"positive": 2}))
    tally.wrote(pipeline.sinks[0], "sink", is_new=True)


def test_a_batch_that_failed_does_not_count(pipeline: Pipeline) -> None:
    tally = Tally(pipeline)
    counted(tally, pipeline, 10, 8)
    nothing = (tally.steps(), tally.sinks())
    assert nothing == (Tally(pipeline).steps(), Tally(pipeline).sinks())

    counted(tally, pipeline, 10, 8)
    batch = tally.end()
    assert (batch.rows_in, batch.rows_out, batch.quarantined) == (10, 8, 2)
    trades, clean = tally.steps()
    assert (trades.rows_out, clean.rows_in, clean.rows_out, clean.quarantined) == (10, 10, 8, 2)
    assert [rule.broken for rule in clean.rules] == [2]
    assert [(sink.rows, sink.batches) for sink in tally.sinks()] == [(8, 1)]


def test_a_count_that_does_not_come_is_unknown(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_counts, "_COUNTED_WITHIN_S", 0.05)
    tally = Tally(pipeline)
    counted(tally, pipeline, 10, 8)
    tally.end()
    threads = threading.active_count()
    counted(tally, pipeline, None, None)
    batch = tally.end()
    counted(tally, pipeline, 10, 8)
    tally.end()

    assert (batch.rows_in, batch.rows_out) == (None, None)
    assert [step.rows_out for step in tally.steps()] == [None, 24]
    assert (tally.read("trades"), tally.sinks()[0].rows) == (None, None)
    assert threading.active_count() <= threads


def test_a_state_is_that_of_its_sources(pipeline: Pipeline) -> None:
    state = State(pipeline.state)
    trades = pipeline.sources[0]
    fills = trades.model_copy(update={"path": "/fills"})
    fills.locate("fills", 4)
    moved = trades.model_copy(update={"path": "/elsewhere"})
    with state.opened():
        state.belongs_to([fills, trades])
        (state.checkpoint / "metadata").mkdir(parents=True)
    with state.opened():
        state.belongs_to([fills, trades])
        for others in ([trades], [fills, moved], [trades, fills]):
            with pytest.raises(PipelineError, match="the state belongs to other sources: ") as it:
                state.belongs_to(others)
            assert "\n" not in str(it.value)
    (state.checkpoint / "metadata").rmdir()
    with state.opened():
        state.belongs_to([moved])


def test_the_order_of_sources_in_the_file_does_not_matter(tmp_path: Path) -> None:
    lines = [f"  {name}: {{format: quire, path: {name}}}\n" for name in ("b", "a")]
    sinks = [f"  - {{from: {name}, format: parquet, path: out/{name}}}\n" for name in ("b", "a")]
    names: list[list[str]] = []
    for written in (lines, lines[::-1]):
        text = f"pipeline: small\nsources:\n{''.join(written)}sinks:\n{''.join(sinks)}"
        (tmp_path / "pipeline.yaml").write_text(text, "utf-8")
        names.append([source.name for source in streams(load(tmp_path / "pipeline.yaml"))])
    assert names == [["a", "b"], ["a", "b"]]


def test_an_index_tells_no_order_among_queues(pipeline: Pipeline, tmp_path: Path) -> None:
    assert not mixes_topics(pipeline, "clean")
    for name in ("a", "b"):
        with quire.open(tmp_path / "trades" / name, roll_cycle="TEST_SECONDLY"):
            pass
    assert mixes_topics(pipeline, "clean")
    one = pipeline.sources[0].model_copy(update={"path": str(tmp_path / "trades" / "a")})
    assert not mixes_topics(dataclasses.replace(pipeline, sources=(one,)), "clean")
    served = one.model_copy(update={"path": "quire://there:7000/trades"})
    assert mixes_topics(dataclasses.replace(pipeline, sources=(served,)), "clean")

    rule = Deduplicate(by=("id",), action="drop")
    step = pipeline.steps[0].model_copy(update={"deduplicate": rule})
    nothing = cast("Any", None)
    batch = Batch(pipeline, 0, "run", None, [], nothing, nothing, nothing)
    for columns in (["_topic", "_index"], ["at"]):
        batch._check_order(step, cast("Any", SimpleNamespace(columns=columns)))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StepError, match="indexes of different queues"):
        batch._check_order(step, cast("Any", SimpleNamespace(columns=["_index", "id"])))  # pyright: ignore[reportPrivateUsage]


def test_what_spark_told_of_old_batches_is_forgotten() -> None:
    progress = Progress()
    for number in range(3 * KEPT):
        offsets = {"startOffset": f'{{"q": {number}}}', "endOffset": f'{{"q": {number + 1}}}'}
        source = {**offsets, "latestOffset": '{"q": {"index": 9, "lag": 7}}'}
        reported: dict[str, Any] = {
            "batchId": number,
            "numInputRows": 1,
            "sources": [source],
            "durationMs": {},
        }
        progress.add(reported)
        progress.add(reported)

    assert len(progress._batches) == KEPT  # pyright: ignore[reportPrivateUsage]
    assert progress.offsets(0) == {"start": {"q": 0}, "end": {"q": 3 * KEPT}, "lag": 7}


def test_a_report_that_fails_ends_no_run(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Report] = []

    def fails(report: Report) -> None:
        reports.append(report)
        raise OSError("the disk is full")

    nothing = cast("Any", None)
    run = _Run(pipeline, State(pipeline.state), nothing, Stop(), lambda _: None, fails)
    for number in range(2 * KEPT):
        run.batches.append(BatchReport(batch=number, started=run.started, duration_s=1.0))
    for _ in range(3):  # in the same two seconds
        run.has_new_batches = True
        run._publish_report()  # pyright: ignore[reportPrivateUsage]

    (report,) = reports
    assert report.outcome == "running"
    assert [batch.batch for batch in report.batches] == list(range(KEPT, 2 * KEPT))
    assert "the disk is full" in caplog.text
