"""
What moves the bytes of a replication: the sessions know neither sockets nor tasks.

``any_session`` says what a driver needs of a session. With asyncio, a ``listener`` accepts
connections and a ``connector`` makes them, again whenever one is lost; ``sending`` and
``receiving`` drive a session over a ``connection``, which is left to its ``own_thread`` once
messages follow, unless it is encrypted; ``idling`` is what that thread does between them.
``any_source`` and ``any_sink`` are the lives of both sides, of every format.
"""
