"""A proxy between a sink and its source, whose connections a test cuts."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

RESET: Final = struct.pack("ii", 1, 0)
CHUNK: Final = 1 << 16


class CuttingProxy:
    """Listens on a port of its own, and connects each peer that comes to another port."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: Final = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Reset all connections: what is on its way is lost, in both directions."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for each in (it for pair in pairs for it in pair):
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                each.shutdown(socket.SHUT_RD)  # wakes the thread that reads it
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:  # the source was killed
                    near.close()
                    continue
                with self._lock:
                    self._pairs.append((near, far))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Forward bytes; when one side closes, so does the other."""
    with suppress(OSError):
        while data := one.recv(CHUNK):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_WR)
