"""
Replication: a queue on several machines.

A :class:`Source` sends every message of a queue to each :class:`Sink` that connects; a sink keeps a
copy with the same messages under the same indexes, and acknowledges what it has stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire._common.later import imported_later

if TYPE_CHECKING:
    from quire.handles.journal.replicas import Replica
    from quire.replication.etcd import Etcd
    from quire.replication.forgetting import forget
    from quire.replication.handover_requests import handover
    from quire.replication.node import Node
    from quire.replication.promotion import promote
    from quire.replication.refilling import RefillSource
    from quire.replication.sink import Sink
    from quire.replication.source import SinkStatus, Source
    from quire.replication.succession import Successor
    from quire.replication.tls import Tls

__all__ = [
    "Etcd",
    "Node",
    "RefillSource",
    "Replica",
    "Sink",
    "SinkStatus",
    "Source",
    "Successor",
    "Tls",
    "forget",
    "handover",
    "promote",
]

# asyncio and ssl take long to import, and `quire stat` reads what a queue is without them.
__getattr__ = imported_later(
    __name__,
    {
        "Etcd": "quire.replication.etcd",
        "Node": "quire.replication.node",
        "RefillSource": "quire.replication.refilling",
        "Replica": "quire.handles.journal.replicas",
        "Sink": "quire.replication.sink",
        "SinkStatus": "quire.replication.source",
        "Source": "quire.replication.source",
        "Successor": "quire.replication.succession",
        "Tls": "quire.replication.tls",
        "forget": "quire.replication.forgetting",
        "handover": "quire.replication.handover_requests",
        "promote": "quire.replication.promotion",
    },
)
