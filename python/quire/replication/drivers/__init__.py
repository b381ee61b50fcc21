"""
Moves the bytes of a replication: sessions know nothing of sockets and tasks.

``any_session`` defines the interface of a session for its driver. With asyncio, a ``listener``
accepts connections, and a ``connector`` makes one and reconnects when it is lost. ``sending`` and
``receiving`` drive a session over a ``connection``. Once messages follow, an unencrypted connection
is passed to a thread of its own (``own_thread``); ``idling`` is how this thread waits.
``any_source`` and ``any_sink`` run the two sides, for every format.
"""
