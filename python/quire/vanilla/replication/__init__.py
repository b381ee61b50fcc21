"""
TCP replication of Vanilla Chronicles, in the protocol of Java Chronicle 3.4 to 3.6.

A :class:`Source` sends the messages of its queue to any number of :class:`Sink`, which keep copies
with the same indexes. A :class:`RemoteAppender`, with asyncio, and a
:class:`BlockingRemoteAppender` append to the queue of a source. Either side may be Java's.
``docs/vanilla.md`` describes the protocol.

``wire_frames`` is what goes over the wire; ``source_session`` and ``sink_session`` are the sides of
a connection, which the drivers of :mod:`quire.replication` connect.
"""

from quire.vanilla.replication.blocking import BlockingRemoteAppender
from quire.vanilla.replication.remote import RemoteAppender
from quire.vanilla.replication.sink import Sink
from quire.vanilla.replication.source import Source
from quire.vanilla.replication.source_session import SinkStatus

__all__ = ["BlockingRemoteAppender", "RemoteAppender", "Sink", "SinkStatus", "Source"]
