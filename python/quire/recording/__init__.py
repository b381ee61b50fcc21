"""
Datagrams, connections and streams to and from queues.

A recorder appends the messages that arrive, with exactly the bytes that were sent:

    async with TcpRecorder(appender, "127.0.0.1", 9000) as recorder:
        await recorder.run()

Recorders run in an event loop without blocking it: while another process has the write lock, or the
disk is slow, nothing more is read from the network. Closing a recorder appends everything that the
system has received by then.

``framing`` cuts streams into messages, ``recorder`` has the base class of all recorders, and
``publishing`` sends messages out again.
"""

from quire.recording.recorded_counts import Counts
from quire.recording.tcp import StreamRecorder, TcpRecorder
from quire.recording.udp import UdpRecorder

__all__ = ["Counts", "StreamRecorder", "TcpRecorder", "UdpRecorder"]
