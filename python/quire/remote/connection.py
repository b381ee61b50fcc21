"""Connections to a server: commands and their answers, with time limits and reconnects."""

from __future__ import annotations

import logging
import os
import select
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from threading import RLock
from time import monotonic, sleep
from typing import Any, Final, TypeAlias, TypeVar, cast
from weakref import finalize

from quire._common import arguments
from quire.errors import (
    ClosedError,
    MovedError,
    OptionsError,
    QuireError,
    RefusedError,
    ServerLostError,
    ServerSilentError,
    TailerInUseError,
)
from quire.remote.address import RemoteAddress, client_context, is_own_authority, parse
from quire.remote.answers import TRY_AGAIN, refused
from quire.remote.waiting import wake_waiting

_T = TypeVar("_T")
Word: TypeAlias = bytes | memoryview | str | int

_log = logging.getLogger("quire")
_CHUNK: Final = 1 << 18
FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_MOST_MOVES: Final = 4


@dataclass(frozen=True, slots=True)
class Server:
    """
    How to reach a server.

    Attributes:
        address: The address of the server and the queue.
        token: The token, if the server requires one.
        tls: The TLS context of connections; None: they are not encrypted.
        timeout_s: How long a call may take, including all attempts to reconnect.
        has_own_authority: Whether *tls* trusts only certificates of the user's own authority.

    """

    address: RemoteAddress
    token: str | None = field(repr=False)
    tls: ssl.SSLContext | None
    timeout_s: float
    has_own_authority: bool = False

    def leads_to(self, host: str) -> bool:
        """
        Return whether the server may redirect the client, with its token, to another address.

        The address must be on this machine, or its server needs a certificate of the user's own

        authority.
        """
        own = self.address.host
        is_near = host == own or (_is_loopback(host) and _is_loopback(own))
        return is_near or (self.tls is not None and self.has_own_authority)

    def check(self) -> None:
        """
        Check that no token leaves this machine unencrypted.

        Raises:
            OptionsError: A token would be sent without TLS.

        """
        if self.token is not None and self.tls is None and not _is_loopback(self.address.host):
            raise OptionsError(
                f"a token is sent beyond this machine only over TLS: host={self.address.host}"
                " (give tls=)"
            )


def server_at(address: RemoteAddress, options: Mapping[str, Any]) -> Server:
    """
    Return how to reach a server with *token*, *tls* and *timeout_s* of :func:`quire.open`.

    Raises:
        OptionsError: A token would be sent without TLS, or *tls* is not an authority.

    """
    tls, timeout_s = options.get("tls"), options.get("timeout_s", 10.0)
    server = Server(
        address,
        options.get("token"),
        client_context(tls),
        arguments.seconds("timeout_s", timeout_s),
        is_own_authority(tls),
    )
    server.check()
    return server


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_foreign(error: BaseException) -> bool:
    """Return whether the received bytes are not an answer of RESP."""
    import hiredis

    return isinstance(error, hiredis.ProtocolError)


def packed(words: Iterable[Word]) -> bytes:
    """Return a command in RESP."""
    import hiredis

    pack = cast("Callable[[tuple[Word, ...]], bytes]", hiredis.pack_command)  # its stub: one word
    return pack(tuple(words))


def _close(found: socket.socket, pid: int) -> None:
    """Close a socket that a process has connected."""
    if found.fileno() < 0:
        return
    if pid != os.getpid():
        socket.close(found.detach())  # without a word to the server, which is the parent's
        return
    wake_waiting(found.fileno())
    with suppress(OSError):  # the server has closed it
        found.shutdown(socket.SHUT_RDWR)  # threads that wait for it are woken
    found.close()


def _named(answer: Any) -> Any:  # noqa: ANN401 - whatever a server says
    """Return an answer in whose maps, at the top or in its list, the names are text."""
    kind: type = answer.__class__
    if kind is dict:
        return {key.decode(): value for key, value in answer.items()}
    is_list_of_maps = kind is list and answer and answer[0].__class__ is dict
    return [_named(it) for it in answer] if is_list_of_maps else answer


class Connection:
    """
    A connection to a server, made at its first use and again after it was lost.

    Args:
        server: How to reach the server.
        greet: Called with each new connection before other commands; it may use :meth:`ask`.

    """

    def __init__(self, server: Server, greet: Callable[[Connection], object] | None = None) -> None:
        self.server = server
        self.lock = RLock()
        self._greet = greet
        self._socket: socket.socket | None = None
        self._reader: Any = None
        self._pid = 0
        self._abandoned: finalize[[socket.socket, int], Connection] | None = None
        self.was_connected = False
        self._sent_by: list[RemoteAddress] = []
        self._is_settled = False
        self.closed = False

    def __del__(self) -> None:
        """Close the socket of a handle that was not closed."""
        self.drop()

    # One attempt.

    def _connect(self, ends: float) -> None:
        import hiredis

        address = self.server.address
        left_s = max(0.001, ends - monotonic())
        raw = socket.create_connection((address.host, address.port), timeout=left_s)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.server.tls is not None:
                raw = self.server.tls.wrap_socket(raw, server_hostname=address.host)
        except BaseException:
            raw.close()
            raise
        self._socket, self._pid = raw, os.getpid()
        self._abandoned = finalize(self, _close, raw, self._pid)  # in a cycle, __del__ is too late
        self._abandoned.atexit = False
        self._reader = hiredis.Reader(replyError=refused)
        hello: list[Word] = ["HELLO", 3]
        if self.server.token is not None:
            hello += "AUTH", "default", self.server.token
        self.ask(hello, ends)
        if self._greet is not None:
            self._greet(self)
        self.was_connected = True

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, which was not made by a parent process."""
        return self._socket is not None and self._pid == os.getpid()

    def fileno(self) -> int:
        """Return the number of the socket, -1 without one."""
        return -1 if self._socket is None else self._socket.fileno()

    def drop(self) -> None:
        """Close the socket: the next call connects again."""
        found, self._socket, self._reader = self._socket, None, None
        if found is None:
            return
        if self._abandoned is not None:
            self._abandoned.detach()
        _close(found, self._pid)

    def close(self) -> None:
        """Close the connection for good."""
        self.closed = True
        self.drop()

    def ask(self, words: Sequence[Word], ends: float) -> Any:  # noqa: ANN401 - whatever it says
        """Send one command and return its answer, without an attempt to reconnect."""
        self.send(packed(words), ends)
        return self.receive(ends)

    def send(self, data: bytes, ends: float) -> None:
        """Send commands."""
        try:
            self._limited(max(0.001, ends - monotonic())).sendall(data)
        except BaseException as error:  # noqa: BLE001 - raised again
            self.drop()
            raise self._lost(error) from None

    def receive(self, ends: float) -> Any:  # noqa: ANN401 - whatever it says
        """Return the next answer; an error is raised."""
        try:
            while (answer := self._reader.gets()) is False:
                self._read(max(0.001, ends - monotonic()))
        except BaseException as error:  # noqa: BLE001 - raised again
            self.drop()
            raise self._lost(error) from None
        return _named(self._checked(answer))

    def poll(self) -> tuple[bool, Any]:
        """Return whether an answer has arrived, and the answer, without waiting."""
        try:
            while (answer := self._reader.gets()) is False:
                try:
                    self._read(0.0)
                except (BlockingIOError, ssl.SSLWantReadError):
                    return False, None
        except BaseException as error:  # noqa: BLE001 - raised again
            self.drop()
            raise self._lost(error) from None
        return True, self._checked(answer)

    def _checked(self, answer: Any) -> Any:  # noqa: ANN401 - whatever a server says
        """Return an answer; an error is raised."""
        if isinstance(answer, ServerLostError):
            self.drop()
            raise self._lost(ConnectionResetError(str(answer)))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _read(self, timeout_s: float) -> None:
        data = self._limited(timeout_s).recv(_CHUNK)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        self._reader.feed(data)

    def wait(self, timeout_s: float, also: int = -1) -> bool:
        """Return whether data arrives within a time, on the socket or on *also*."""
        found = self._opened()
        if isinstance(found, ssl.SSLSocket) and found.pending():
            return True
        poll = select.poll()
        poll.register(found.fileno(), select.POLLIN)
        if also >= 0:
            poll.register(also, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout_s) * 1000))

    def _limited(self, timeout_s: float) -> socket.socket:
        """Return the socket with a timeout of this time, or one percent longer."""
        found = self._opened()
        known = found.gettimeout()
        if known is None or abs(known - timeout_s) > timeout_s / 100:  # setting it is a system call
            found.settimeout(timeout_s)
        return found

    def _opened(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionResetError("not connected")
        return self._socket

    def _lost(self, error: BaseException) -> BaseException:
        address = self.server.address.url
        if isinstance(error, TimeoutError):
            return ServerSilentError(
                f"the server did not answer in time: queue={address}"
                f" timeout_s={self.server.timeout_s}"
            )
        if isinstance(error, OSError):
            return ServerLostError(f"the connection was lost: queue={address} error={error}")
        if _is_foreign(error):
            return ServerLostError(
                f"the process that answered is not a Quire server: queue={address} error={error} (a quire://"
                " address has the port of --listen, not that of --flight or --web)"
            )
        return error

    # All attempts.

    def deadline(self) -> float:
        """Return when a call that begins now must be finished."""
        return monotonic() + self.server.timeout_s

    def ready(self, ends: float) -> None:
        """
        Connect unless connected; retry until the deadline.

        Raises:
            ClosedError: The handle was closed.
            ServerLostError: No connection was made in time.

        """
        if self.closed:
            raise ClosedError(f"the handle is closed: queue={self.server.address.url}")
        if self.is_connected:
            return
        self.drop()
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._connect(ends)
            except (ssl.SSLCertVerificationError, RefusedError):
                self.drop()
                raise
            except (OSError, TailerInUseError) as error:
                self.drop()
                if not self.was_connected and not isinstance(error, TailerInUseError):
                    raise self._unreachable(error) from None
                if monotonic() + pause_s > ends or not self.was_connected:
                    raise self._unreachable(error) from None
                _log.warning(
                    "reconnecting: queue=%s pause_s=%s error=%s",
                    self.server.address.url,
                    pause_s,
                    error,
                )
                sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            except BaseException:
                self.drop()
                raise
            else:
                return

    def _unreachable(self, error: Exception) -> Exception:
        if isinstance(error, ServerSilentError | ServerLostError | TailerInUseError):
            return error
        return ServerLostError(
            f"cannot reach the server: queue={self.server.address.url} error={error}"
        )

    def call(self, *words: Word, more_s: float = 0.0) -> Any:  # noqa: ANN401 - whatever it says
        """
        Send a command that may be repeated until it is answered; it may take *more_s* longer.

        Until the server has answered once, it may redirect the client to another server.

        Raises:
            ServerLostError: The server was not reached in time.
            ServerSilentError: The server did not answer in time.
            MovedError: Another server has the queue, and the client may not be redirected to it.

        """
        with self.lock:
            ends = self.deadline() + more_s
            while True:
                self._ready_there(ends)
                try:
                    answer = self.ask(words, ends)
                    self._is_settled = True
                    return answer  # noqa: TRY300 - what is raised below is of the call
                except MovedError as moved:
                    self._follow(moved)
                except ServerSilentError:
                    raise
                except (ServerLostError, RefusedError) as error:
                    self.pause_after(error, ends)

    def _ready_there(self, ends: float) -> None:
        """Connect; the errors of a server to which the client was redirected name that server."""
        try:
            self.ready(ends)
        except RefusedError as error:
            if self._sent_by:
                raise RefusedError(f"{error} server={self.server.address.url}") from None
            raise

    def _follow(self, moved: MovedError) -> None:
        """
        Go to the server that has the queue.

        Raises:
            MovedError: The queue was already open, or the redirect is not safe, or leads in
            circles.

        """
        here = self.server.address
        there = parse(moved.address, names_queue=False)._replace(topic=here.topic)
        way = " ".join(it.url for it in (*self._sent_by, here, there))
        if self._is_settled:
            problem = f"the queue is served elsewhere now: queue={here.url} (open it again)"
        elif there in {*self._sent_by, here}:
            problem = f"the servers redirect clients in circles (correct their --peer): way={way}"
        elif len(self._sent_by) >= _MOST_MOVES:
            problem = f"too many redirects: way={way}"
        elif not self.server.leads_to(there.host):
            problem = (
                f"the queue is served elsewhere: queue={here.url} server={there.url} (open it"
                " there: a server sends the client to another machine only over TLS, with tls="
                " the file of an authority)"
            )
        else:
            self._sent_by.append(here)
            self.drop()
            self.was_connected = False
            self.server = replace(self.server, address=there)
            self.server.check()
            return
        error = MovedError(problem)
        error.address = moved.address
        raise error

    def repeated(self, exchange: Callable[[], _T], ends: float) -> _T:
        """
        Return the result of an exchange, which starts over after a lost connection.

        Raises:
            ServerLostError: The connection was lost, and there is no time for another attempt.
            ServerSilentError: The server did not answer in time.

        """
        while True:
            try:
                return exchange()
            except ServerSilentError:
                raise
            except ServerLostError as error:
                self.pause_after(error, ends)

    @staticmethod
    def pause_after(error: QuireError, ends: float) -> None:
        """Wait a moment before a call is repeated; raise its error if it must not be."""
        is_final = isinstance(error, RefusedError) and not str(error).startswith(TRY_AGAIN)
        if is_final or monotonic() + FIRST_PAUSE_S > ends:
            raise error
        sleep(FIRST_PAUSE_S)
