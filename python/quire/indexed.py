"""
Indexed Chronicles: the files ``NAME.index`` and ``NAME.data`` of Java Chronicle 3.

They are read, also while Java writes. Their one writer knows no lock, so Quire does not append.
"""

from quire.handles.indexed import IndexedQueue, IndexedTailer

__all__ = ["IndexedQueue", "IndexedTailer"]
