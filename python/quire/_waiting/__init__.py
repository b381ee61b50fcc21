"""
Waiting for messages: what tailers of every format and consumers of groups share.

``following`` waits in a thread, ``async_reading`` in an event loop; both by :mod:`quire.pausers`.
"""
