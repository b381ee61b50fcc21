"""
A client of a recorder: ``python -m bench.sending TRANSPORT PORT SIZE``.

It sends as many messages as each line of its stdin says, and ends with it.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from bench.task import DISTINCT, messages

DATAGRAMS_PER_S = 170_000
"""A little more than ten million a minute; without a pace the system drops most of them."""
_HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_BINARY, _MASKED = 0x82, 0x80
_MASK = bytes(4)
_CLOSE = bytes([0x88, _MASKED | 2]) + _MASK + (1000).to_bytes(2, "big")

_Send: TypeAlias = Callable[[int], None]


def main() -> None:
    """Send what stdin asks for."""
    transport, port, size = sys.argv[1:]
    with TRANSPORTS[transport](int(port), messages(int(size))) as send:
        for line in sys.stdin:
            send(int(line))


@contextmanager
def _datagrams(port: int, payloads: list[bytes]) -> Generator[_Send]:
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))

        def send(count: int) -> None:
            begin = time.monotonic()
            for number in range(count):
                while time.monotonic() - begin < number / DATAGRAMS_PER_S:
                    pass
                sender.send(payloads[number % DISTINCT])

        yield send


@contextmanager
def _stream(port: int, framed: bytes, hello: bytes = b"", goodbye: bytes = b"") -> Generator[_Send]:
    with socket.create_connection(("127.0.0.1", port)) as sender:
        if hello:
            sender.sendall(hello)
            assert b" 101 " in sender.recv(4096)

        def send(count: int) -> None:
            for _ in range(count // DISTINCT):
                sender.sendall(framed)

        yield send
        sender.sendall(goodbye)


def _framed(port: int, payloads: list[bytes]) -> AbstractContextManager[_Send]:
    return _stream(port, b"".join(len(it).to_bytes(4, "big") + it for it in payloads))


def _websocket(port: int, payloads: list[bytes]) -> AbstractContextManager[_Send]:
    heads = (bytes([_BINARY, _MASKED | len(it)]) + _MASK for it in payloads)
    framed = b"".join(map(bytes.__add__, heads, payloads))
    return _stream(port, framed, _HANDSHAKE, _CLOSE)


TRANSPORTS = {"udp": _datagrams, "tcp": _framed, "websocket": _websocket}


if __name__ == "__main__":
    main()
