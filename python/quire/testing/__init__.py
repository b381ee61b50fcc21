"""
Helpers for tests of programs that use queues: another process, and fixtures of pytest.

>>> import operator
>>> with quire.testing.Peer(operator.attrgetter("entry_count"), queue) as peer:
...     peer.result()
0

A ``StackSampler`` shows what a loop is doing while it is late.
"""

from quire.testing.peer import Peer
from quire.testing.stacks import Stack, StackSampler, beat

__all__ = ["Peer", "Stack", "StackSampler", "beat"]
