"""
The handles that users get: queues, appenders and tailers.

``base`` has what those of every format have, ``raw`` what those share whose messages are raw bytes;
``journal`` and the modules named after a format have the handles themselves. What the package asks
about a format stands below, in :mod:`quire.formats`.
"""
