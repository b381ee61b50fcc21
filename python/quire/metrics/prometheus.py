"""Metrics of queues for ``prometheus-client`` (``pip install "quire[metrics]"``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector as BaseCollector

from quire.metrics.exported import COUNTERS, GAUGES, LATENCIES, Watch, Watched, label_of
from quire.metrics.snapshot import Histogram

__all__ = ["Collector"]

# Powers of two are edges of the histogram's own buckets: from 128 ns to 8.6 s.
_LIMITS_NS: Final = [2**power for power in range(7, 34)]


class Collector(BaseCollector):
    """
    Provides the metrics of queues to a registry; they are read at each scrape.

    Args:
        queues: Queues of any format or their paths, or a mapping of the names to show to either. A
            path without a queue is checked again at each scrape.

    Examples:
        >>> from prometheus_client import CollectorRegistry, generate_latest
        >>> from quire.metrics.prometheus import Collector
        >>> registry = CollectorRegistry()
        >>> registry.register(Collector({"orders": queue}))
        >>> b'quire_messages_appended_total{queue="orders"} 0.0' in generate_latest(registry)
        True

    """

    def __init__(self, queues: Iterable[Watched] | Mapping[str, Watched]) -> None:
        """Store the queues."""
        self._watch = Watch(queues)
        self._lock = Lock()  # a server scrapes in a thread for each request

    def watch(self, queues: Mapping[str, Watched]) -> None:
        """
        Watch only these queues from now on.

        Args:
            queues: The names to show, and a queue or the path of one for each.

        """
        with self._lock:
            self._watch.set(queues)

    def describe(self) -> Iterator[Metric]:
        """Return no metrics: registering must not read the queues."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of all queues."""
        with self._lock:
            return iter([*self._families()])

    def _families(self) -> Iterator[Metric]:
        found = self._watch.metrics()
        for kind, exported in ((CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)):
            for one in exported:
                labels = ["queue", one.label] if one.label else ["queue"]
                family = kind(_name(one.name, one.unit), one.help, labels=labels)
                for queue, metrics in found.items():
                    for name, value in self._watch.values(one, queue, metrics).items():
                        named = [label_of(queue), label_of(name)]
                        family.add_metric(named[: len(labels)], value)
                yield family
        for latency in LATENCIES:
            histogram = HistogramMetricFamily(
                f"quire_{latency.name}_seconds", latency.help, labels=["queue"]
            )
            for queue, metrics in found.items():
                if not metrics.recorded:
                    continue
                values = latency.values(metrics)
                histogram.add_metric([label_of(queue)], _cumulative(values), values.sum_ns / 1e9)
            yield histogram
        up = GaugeMetricFamily("quire_up", "Whether the queue could be read.", labels=["queue"])
        for queue, is_up in self._watch.up(found).items():
            up.add_metric([label_of(queue)], is_up)
        yield up


def _name(name: str, unit: str) -> str:
    is_said = unit in name or unit in {"files", "cycles", "stalls"}
    return f"quire_{name}" if is_said else f"quire_{name}_{unit}"


def _cumulative(values: Histogram) -> list[tuple[str, float]]:
    limits = [(str(limit / 1e9), float(values.at_most(limit))) for limit in _LIMITS_NS]
    return [*limits, ("+Inf", float(values.count))]
