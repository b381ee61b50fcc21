"""
The metrics of queues: counters, latencies, lag and disk space, and their exporters.

>>> with quire.open("orders", metrics=True) as orders, orders.appender() as writer:
...     last = writer.write_many([b"one", b"two"])
...     found = orders.metrics()
>>> found.messages_appended, found.bytes_appended, found.append_latency.count
(2, 6, 1)
"""

from quire.metrics.disk_monitor import DiskMonitor, DiskSpace
from quire.metrics.queue_state import QueueState
from quire.metrics.replication_state import ReplicationState
from quire.metrics.running_minimum import RunningMinimum
from quire.metrics.snapshot import Disk, Histogram, Metrics, RingState

__all__ = [
    "Disk",
    "DiskMonitor",
    "DiskSpace",
    "Histogram",
    "Metrics",
    "QueueState",
    "ReplicationState",
    "RingState",
    "RunningMinimum",
]
