"""Narrowing a planned read by a condition: topics, cycles and ranges of indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

import quire
from quire.arrow.names import CYCLE, INDEX, TIMESTAMP, TOPIC
from quire.formats.adapters import numbering_of
from quire.formats.numbering import Numbering
from quire.ranges.cycles import CycleRange
from quire.ranges.event_time import TimeField, epoch_ns
from quire.ranges.seek import index_at_time
from quire.spark.read.partitions import TopicRange
from quire.spark.read.scan_conditions import Condition, bounds, names_among
from quire.spark.source_options import ReadOptions
from quire.spark.topics import open_queue, topic_in_errors

_LAST = 2**63 - 1


def pruned(
    spans: Iterable[TopicRange],
    conditions: tuple[Condition, ...],
    options: ReadOptions,
    lateness_us: int | None,
) -> list[TopicRange]:
    """
    Return the messages for which a condition may be true.

    Args:
        spans: The messages, topic by topic.
        conditions: The known parts of the condition.
        options: The options of the read.
        lateness_us: By how many microseconds a message may be earlier than one before it; None:
            the order of event times is unknown.

    """
    topics = names_among(conditions, TOPIC)
    chosen = [span for span in spans if topics is None or span.topic in topics]
    return [*map(_of_span(conditions, options, lateness_us), chosen)]


def _of_span(
    conditions: tuple[Condition, ...], options: ReadOptions, lateness_us: int | None
) -> Callable[[TopicRange], TopicRange]:
    lowest, highest = bounds(conditions, INDEX)
    cycles, times = bounds(conditions, CYCLE), bounds(conditions, TIMESTAMP)
    field = options.time_field if lateness_us is not None and times != (None, None) else None
    needs_queue = cycles != (None, None) or field is not None

    def prune(span: TopicRange) -> TopicRange:
        start, end = lowest or 0, _LAST if highest is None else highest + 1
        runs: Iterable[CycleRange] = span.runs
        if needs_queue and span.runs:
            with (
                topic_in_errors(span.topic),
                open_queue(span.path, options) as queue,
            ):
                runs = [*_in_cycles(numbering_of(queue), span.runs, *cycles)]
                if field is not None:
                    first, after = _at_times(queue, field, times, lateness_us or 0)
                    start, end = max(start, first), min(end, after)
        return replace(span, runs=tuple(_between(runs, start, end)))

    return prune


def _in_cycles(
    numbering: Numbering, runs: Iterable[CycleRange], low: int | None, high: int | None
) -> Iterator[CycleRange]:
    for run in runs:
        cycle = numbering.to_cycle(run.first_index)
        if (low is None or cycle >= low) and (high is None or cycle <= high):
            yield run


def _at_times(
    queue: quire.Queue,
    field: TimeField,
    times: tuple[datetime | None, datetime | None],
    lateness_us: int,
) -> tuple[int, int]:
    """Return a range of indexes that contains all messages with event times between two."""
    low, high = times
    late_ns = lateness_us * 1_000
    try:
        first = 0 if low is None else index_at_time(queue, epoch_ns(low) - late_ns, field)
        end = _LAST
        if high is not None:  # columns have microseconds, messages may have parts of one
            end = index_at_time(queue, epoch_ns(high) + late_ns + 1_000, field)
    except ValueError:  # no message has the field; malformed messages are reported when read
        return 0, _LAST
    return first, end


def _between(runs: Iterable[CycleRange], start: int, end: int) -> Iterator[CycleRange]:
    for run in runs:
        found = run.split(run.until(start).count)[1].until(end)
        if found.count:
            yield found
