"""
Datagrams, connections and streams to and from queues.

A recorder appends what arrives, each message with exactly the bytes that it was sent with:

    async with TcpRecorder(appender, "127.0.0.1", 9000) as recorder:
        await recorder.run()

Recorders run in an event loop and never hold it up: while another process has the write lock, or
the disk is slow, nothing more is read from the network. Closing a recorder appends what the system
has received up to then.

``framing`` cuts streams into messages, ``recorder`` is what all recorders share, ``publishing``
sends messages out again.
"""

from quire.recording.recorded_counts import Counts
from quire.recording.tcp import StreamRecorder, TcpRecorder
from quire.recording.udp import UdpRecorder

__all__ = ["Counts", "StreamRecorder", "TcpRecorder", "UdpRecorder"]
