"""
Indexed Chronicles: the files ``NAME.index`` and ``NAME.data`` of Java Chronicle 3.

Quire reads them, even while Java writes. Their single writer uses no lock, so Quire cannot append.
"""

from quire.handles.indexed import IndexedQueue, IndexedTailer

__all__ = ["IndexedQueue", "IndexedTailer"]
