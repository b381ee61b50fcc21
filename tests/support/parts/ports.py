"""A port for a server that a test starts, or starts again, in another process."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
OFTEN = 10_000


def free_port() -> int:
    """Return a port that the system gives nobody who asks for any, so that it stays free."""
    above = int(RANGE.read_text("utf-8").split()[0]) if RANGE.exists() else 49_152
    choose = random.SystemRandom()
    while True:
        port = choose.randrange(above - OFTEN, above)
        with suppress(OSError), socket.create_server((HOST, port)):
            return port
