"""A warning about fields of a schema that no message has, usually because of a mistyped name."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from quire._native import Seen
from quire.arrow.content import RowContent
from quire.arrow.infer import look
from quire.errors import QuireError
from quire.formats.adapters import tailer_of
from quire.ranges.cycles import CycleRange
from quire.spark.read.partitions import TopicRange
from quire.spark.read.row_plan import RowPlan
from quire.spark.topics import open_queue

_TOPICS: Final = 8
_RUNS: Final = 8
_MESSAGES: Final = 16

_log = logging.getLogger("quire.spark")


def warn_of_missing_fields(spans: Sequence[TopicRange], plan: RowPlan) -> None:
    """Look at some messages of a read, spread over it, and warn of fields that none of them has."""
    content, options = plan.decoded.content, plan.options
    spans = [span for span in spans if span.runs][:_TOPICS]
    if options.infer_schema or not isinstance(content, RowContent) or content.is_value:
        return
    wanted = [name for name in content.fields.names if name in plan.arrow.names]
    if not wanted or not spans:
        return
    seen, count = Seen(), 0
    try:
        for span in spans:
            with (
                open_queue(span.path, options) as queue,
                tailer_of(queue) as tailer,
            ):
                for index, messages in _places(span.runs):
                    if tailer.move_to_index(index):
                        count += look(seen, tailer, messages)
        sorts, fields, _ = seen.found()
    except (QuireError, OSError, ValueError):
        return  # the tasks report it
    known = [name for name, _ in fields]
    if sorts != ["struct"] or not known:
        return
    for name in wanted:
        if name not in known:
            _log.warning(
                "none of the sampled messages has the field, is its name right? field=%s"
                " messages=%d topics=%s known=%s",
                name,
                count,
                ", ".join(span.topic for span in spans),
                ", ".join(known),
            )


def _places(runs: Sequence[CycleRange]) -> Iterator[tuple[int, int]]:
    """Yield where to sample, and how many messages: at the starts of some runs, and at the end."""
    step = max(len(runs) // _RUNS, 1)
    for run in runs[::step]:
        yield run.first_index, min(run.count, _MESSAGES)
    last = runs[-1]
    yield last.index_at(max(last.count - _MESSAGES, 0)), min(last.count, _MESSAGES)
