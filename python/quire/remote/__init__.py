"""
Handles of queues on a server, as ``quire.open("quire://host:port/queue")`` returns them.

They are subclasses of :class:`quire.Queue`, :class:`quire.Appender`, :class:`quire.Tailer` and
:class:`quire.Consumer`. The server is ``quire serve``; ``docs/remote.md`` describes the protocol.
"""

from quire.remote.appender import RemoteAppender
from quire.remote.queue import RemoteQueue, open_remote
from quire.remote.tailer import RemoteTailer

__all__ = ["RemoteAppender", "RemoteQueue", "RemoteTailer", "open_remote"]
