"""
Waiting for messages: the common part of tailers of every format and consumers of groups.

``following`` waits in a thread, ``async_reading`` in an event loop; both by :mod:`quire.pausers`.
"""
