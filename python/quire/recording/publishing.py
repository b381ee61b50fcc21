"""Sending the messages of a queue at a pace."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final

from quire._native import Excerpt
from quire.errors import WaitTimeoutError
from quire.handles.base import AnyExcerpt, Queue, Tailer
from quire.recording.addresses import Address, show_address
from quire.recording.framing import LENGTH_BYTES
from quire.recording.udp import MAX_DATAGRAM_BYTES
from quire.replaying.pacing import LONGEST_SLEEP_S, Replay

BUFFER_BYTES: Final = 64 << 10
_UDP_HEADER_BYTES: Final = 8
_IP_HEADER_BYTES: Final = 20
_BEHIND_S: Final = 1.0
_PATIENCE_S: Final = 1.0


class Rate:
    """
    Limits the number of messages a second.

    If the receiver stalls, messages are sent at the same rate afterwards: there is no burst to
    catch up.

    Args:
        per_second: The number of messages a second.
        now: Returns the seconds of a monotonic clock.
        sleep: Waits for a number of seconds.

    """

    def __init__(
        self,
        per_second: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not 0 < per_second < float("inf"):
            raise ValueError(f"the rate must be above 0: per_second={per_second}")
        self._per_second = per_second
        self._now, self._sleep = now, sleep
        self._began_s = now()
        self._count = 0

    def wait(self) -> None:
        """Wait until the next message is due."""
        due_s = self._began_s + self._count / self._per_second
        while (left_s := due_s - self._now()) > 0:
            self._sleep(min(left_s, LONGEST_SLEEP_S))
        if left_s < -_BEHIND_S:
            self._began_s, self._count = self._now(), 0
        self._count += 1


class Output(ABC):
    """
    Where messages are sent.

    Args:
        receiver: The receiver's address or URL, as ``name=value``; None: stdout.

    """

    def __init__(self, receiver: str | None) -> None:
        self.receiver = receiver

    @abstractmethod
    def misfit(self, payload: bytes) -> str | None:
        """Return why a message cannot be sent; None if it can."""

    @abstractmethod
    def send(self, payload: bytes) -> bool:
        """Send a message; False if messages may be buffered until the next flush."""

    def flush(self) -> None:  # noqa: B027 - most need not
        """Send buffered messages."""


class Datagrams(Output):
    """
    Sends each message as a datagram.

    Args:
        address: The receiver's address.

    """

    def __init__(self, address: Address) -> None:
        import socket

        super().__init__(f"address={show_address(address)}")
        found = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
        family, kind, self._target = found[0], found[1], found[4]
        self._socket = socket.socket(family, kind)
        headers = _UDP_HEADER_BYTES + (_IP_HEADER_BYTES if family == socket.AF_INET else 0)
        self._max_bytes = MAX_DATAGRAM_BYTES - headers

    def misfit(self, payload: bytes) -> str | None:
        """Return why a message cannot be a datagram."""
        if len(payload) > self._max_bytes:
            return f"too long for a datagram: length={len(payload)} limit={self._max_bytes}"
        return None

    def send(self, payload: bytes) -> bool:
        """Send a message, which may never be received."""
        self._socket.sendto(payload, self._target)
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class Stream(Output):
    """
    Sends messages over a stream, and buffers them until there are enough or :meth:`flush`.

    Args:
        receiver: As for :class:`Output`.
        write: Sends all of the given bytes, and waits while the receiver is not ready.
        framing: As for :class:`quire.recording.TcpRecorder`.

    """

    def __init__(
        self, receiver: str | None, write: Callable[[bytes], object], framing: str
    ) -> None:
        super().__init__(receiver)
        self._write = write
        self._has_lengths = framing == "length"
        self._buffer = bytearray()

    def misfit(self, payload: bytes) -> str | None:
        """Return why a message cannot be a line."""
        if not self._has_lengths and (b"\n" in payload or payload.endswith(b"\r")):
            return "it contains a line end, so it cannot be sent as a line (use --framing length)"
        return None

    def send(self, payload: bytes) -> bool:
        """Buffer a message, and send the buffer once it is long enough."""
        if self._has_lengths:
            self._buffer += len(payload).to_bytes(LENGTH_BYTES, "big") + payload
        else:
            self._buffer += payload + b"\n"
        if len(self._buffer) < BUFFER_BYTES:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Send buffered messages."""
        if self._buffer:
            chunk = bytes(self._buffer)
            self._buffer.clear()
            self._write(chunk)


@contextmanager
def datagrams(address: Address) -> Generator[Datagrams]:
    """Open an output that sends datagrams."""
    with closing(Datagrams(address)) as output:
        yield output


@contextmanager
def connection(address: Address, framing: str) -> Generator[Stream]:
    """Connect to a listening receiver."""
    import socket

    try:
        connected = socket.create_connection(address)
    except OSError as error:
        text = f"cannot connect: address={show_address(address)} reason={error.strerror}"
        raise OSError(error.errno, text) from error
    with connected:
        yield Stream(f"address={show_address(address)}", connected.sendall, framing)


@contextmanager
def stdout(framing: str) -> Generator[Stream]:
    """Send to stdout."""

    def write(chunk: bytes) -> None:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()

    yield Stream(None, write, framing)


def messages(plan: Replay, *, follow: bool, waits: Callable[[], object]) -> Iterator[AnyExcerpt]:
    """
    Yield the messages of a replay when they are due, and those that are appended later.

    Args:
        plan: The messages to send, and their pace. If the range begins at a time that no message
            has reached yet, *follow* waits for such a message.
        follow: Whether to continue with messages that are appended later.
        waits: Called before waiting for messages, and from time to time while waiting.

    """
    while follow and plan.is_ahead:
        with plan.source.tailer() as tailer:
            tailer.to_end()
            waits()
            _wait(tailer)
        plan = plan.again()
    last = plan.range.past - 1  # also if the range has no message
    for document in plan.documents():
        last = document.index
        yield Excerpt(document.index, bytes(document.bytes))
    if follow:
        yield from _later(plan.source, last, waits)


def _later(queue: Queue, last: int, waits: Callable[[], object]) -> Iterator[AnyExcerpt]:
    with queue.tailer() as tailer:
        if last >= 0:
            tailer.move_to_index(last)
        while True:
            yield from (it for it in tailer if it.index > last)
            waits()
            _wait(tailer)


def _wait(tailer: Tailer) -> None:
    with suppress(WaitTimeoutError):
        tailer.wait(timeout_s=_PATIENCE_S)
