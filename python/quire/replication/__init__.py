"""
Replication: a queue on several machines.

A :class:`Source` sends every message of a queue to each :class:`Sink` that connects; a sink keeps a
copy with the same messages under the same indexes, and says what it has stored.
"""

from quire.replication.promotion import promote
from quire.replication.sink import Sink
from quire.replication.source import SinkStatus, Source
from quire.replication.tls import Tls

__all__ = ["Sink", "SinkStatus", "Source", "Tls", "promote"]
