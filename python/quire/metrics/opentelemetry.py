"""Metrics of queues for OpenTelemetry (``pip install "quire[metrics]"``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from opentelemetry import metrics as api

from quire.metrics.exported import (
    COUNTERS,
    GAUGES,
    LATENCIES,
    Exported,
    ExportedLatency,
    Watch,
    Watched,
    label_of,
)

__all__ = ["observe"]

_PERCENTS: Final = (50, 90, 99, 99.9)


def observe(
    queues: Iterable[Watched] | Mapping[str, Watched], meter: api.Meter | None = None
) -> None:
    """
    Let a meter observe the metrics of queues each time it exports.

    Latencies are gauges with the attribute ``percent``: 50, 90, 99, 99.9 and 100, the maximum.

    Args:
        queues: Queues or their paths, or a mapping of the names to show to either.
        meter: The meter; that of the global provider by default.

    Examples:
        >>> from quire.metrics.opentelemetry import observe
        >>> observe({"orders": queue})

    """
    meter = meter or api.get_meter("quire")
    watch = Watch(queues)
    for one in COUNTERS:
        callback = partial(_numbers, watch, one)
        meter.create_observable_counter(_name(one.name), [callback], one.unit, one.help)
    for one in GAUGES:
        callback = partial(_numbers, watch, one)
        meter.create_observable_gauge(_name(one.name), [callback], one.unit, one.help)
    for latency in LATENCIES:
        callback = partial(_percentiles, watch, latency)
        meter.create_observable_gauge(_name(latency.name), [callback], "s", latency.help)


def _name(name: str) -> str:
    return f"quire.{name}"


def _numbers(watch: Watch, one: Exported, _: api.CallbackOptions) -> Iterable[api.Observation]:
    for queue, metrics in watch.metrics().items():
        for name, value in watch.values(one, queue, metrics).items():
            labels = {"queue": label_of(queue)}
            yield api.Observation(value, labels | ({one.label: label_of(name)} if name else {}))


def _percentiles(
    watch: Watch, latency: ExportedLatency, _: api.CallbackOptions
) -> Iterable[api.Observation]:
    for queue, metrics in watch.metrics().items():
        values = latency.values(metrics)
        for percent in (*_PERCENTS, 100):
            nanos = values.percentile(percent)
            if nanos is not None:
                labels = {"queue": label_of(queue), "percent": str(percent)}
                yield api.Observation(nanos / 1e9, labels)
