"""
Helpers for tests of programs that use queues: another process, and fixtures of pytest.

>>> import operator
>>> with quire.testing.Peer(operator.attrgetter("entry_count"), queue) as peer:
...     peer.result()
0
"""

from quire.testing.peer import Peer

__all__ = ["Peer"]
