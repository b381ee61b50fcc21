"""The caller of a Flight call: its token, and what it allows."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, cast
from urllib.parse import unquote

from pyarrow import flight

from quire.errors import OptionsError
from quire.server.client_shares import ClientShares, name_of
from quire.server.tokens import Right, Token, TokenFile

KEY: Final = "token"
_LONGEST: Final = 4096
_REMEMBERED: Final = 10_000
# Nothing of these streams is received before. Of GetSchema, pyarrow answers no error of Flight.
_FIRST: Final = (
    flight.FlightMethod.DO_PUT,
    flight.FlightMethod.DO_EXCHANGE,
    flight.FlightMethod.GET_SCHEMA,
)


@dataclass(frozen=True, slots=True)
class Caller:
    """
    A client, during one call.

    Attributes:
        token: Its token; None: no token is needed.
        peer: Its address, for the log and the audit log.
        certificate: Always empty: gRPC verifies certificates, but pyarrow does not show them.

    """

    token: Token | None
    peer: str
    certificate: str = ""


class CallerToken(flight.ServerMiddleware):
    """
    The token in the headers of a call.

    Args:
        token: The token; None: there is none.
        is_basic: It came as a password: what it is as a bearer token is answered.

    """

    def __init__(self, token: bytes | None, *, is_basic: bool) -> None:
        self.token = token
        self._is_basic = is_basic

    def sending_headers(self) -> dict[str, Any]:
        """Return the headers of the answer."""
        if self.token is None or not self._is_basic:
            return {}
        return {"authorization": f"Bearer {self.token.decode('latin-1')}"}


class Callers(flight.ServerMiddlewareFactory):
    """
    Admits calls by their tokens.

    Args:
        tokens: The file of tokens; None: no token is needed.
        note: Writes to the audit log: what, by whom, about which queue.
        most: How many streams there may be at once.
        most_of_one: How many of them one client may have.

    """

    def __init__(
        self,
        tokens: TokenFile | None,
        note: Callable[[str, Caller, str], object],
        most: int,
        most_of_one: int,
    ) -> None:
        super().__init__()
        self._tokens = None if tokens is None else TokenFile(tokens.path)  # threads: its own
        self._note = note
        self._lock = Lock()
        self._streams = ClientShares("too many streams", most, most_of_one)
        self._seen: OrderedDict[tuple[str, ...], None] = OrderedDict()

    def start_call(
        self, info: flight.CallInfo, headers: dict[str, list[str] | list[bytes]]
    ) -> flight.ServerMiddleware:
        """Take the token of a call; without one, no part of a stream is received."""
        token, is_basic = _token_in(headers)
        if info.method in _FIRST:
            self._found(token, "?")
        return CallerToken(token, is_basic=is_basic)

    def of(self, context: flight.ServerCallContext) -> Caller:
        """
        Return the caller.

        Raises:
            FlightUnauthenticatedError: A token is required, and there is no valid one.

        """
        given = cast("CallerToken", context.get_middleware(KEY))
        peer = _shown(cast("bytes | str", context.peer()))
        caller = Caller(self._found(given.token, peer), peer)
        if caller.token is not None:
            self._audit("authenticated", caller, "")
        return caller

    def _found(self, token: bytes | None, peer: str) -> Token | None:
        with self._lock:
            try:
                if self._tokens is None or not self._tokens.is_required:
                    return None
                found = None if token is None else self._tokens.find(token)
            except OptionsError:
                found = None
        if found is not None:
            return found
        if token is not None:
            self._note("wrong token", Caller(None, peer), "")
        raise flight.FlightUnauthenticatedError(
            "a valid token is required: send the header authorization: Bearer TOKEN"
        )

    def check(self, caller: Caller, right: Right, topic: str) -> None:
        """
        Check that a client has a right to a queue.

        Raises:
            FlightUnauthenticatedError: The token has expired, or was revoked.
            FlightUnauthorizedError: The token does not allow this use of the queue.

        """
        self.check_still(caller)
        if caller.token is not None and not caller.token.may(right, topic):
            self._note("refused", caller, f"{right} {topic}")
            raise flight.FlightUnauthorizedError(
                f"the token may not {right} this queue: name={topic}"
            )
        self._audit(right, caller, topic)

    def check_still(self, caller: Caller) -> None:
        """
        Check that a token is still valid.

        Raises:
            FlightUnauthenticatedError: The token has expired, or was revoked.

        """
        with self._lock:
            if self._tokens is None or (caller.token is None and not self._is_required()):
                return
            is_valid = caller.token is not None and self._tokens.still(caller.token)
        if not is_valid:
            raise flight.FlightUnauthenticatedError("the token has expired, or was revoked")

    def _is_required(self) -> bool:
        try:
            return self._tokens is not None and self._tokens.is_required
        except OptionsError:
            return True

    def _audit(self, what: str, caller: Caller, topic: str) -> None:
        """Record the first use of a queue by a connection in the audit log."""
        token = "" if caller.token is None else caller.token.name
        key = (caller.peer, token, what, topic)
        with self._lock:
            is_known = key in self._seen
            self._seen[key] = None
            self._seen.move_to_end(key)
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        if not is_known:
            self._note(what, caller, topic)

    def streaming(self, caller: Caller) -> AbstractContextManager[None]:
        """
        Count a stream of a client while it lasts.

        Raises:
            RefusedError: There are too many streams.

        """
        return self._streams.holding(name_of(caller))


def _token_in(headers: Mapping[str, Sequence[str | bytes]]) -> tuple[bytes | None, bool]:
    """Return the token of some headers, and whether it came as a password."""
    given = next((it for name, it in headers.items() if name.lower() == "authorization"), ())
    if len(given) != 1 or len(given[0]) > _LONGEST:
        return None, False
    text: Any = given[0]
    words = (text if isinstance(text, bytes) else text.encode("latin-1", "replace")).split(b" ", 1)
    kind, token = words[0].lower(), words[-1].strip()
    if len(words) == 1 or kind not in {b"bearer", b"basic"}:
        return None, False
    if kind == b"bearer":
        return token, False
    try:
        return base64.b64decode(token, validate=True).partition(b":")[2], True
    except (binascii.Error, ValueError):
        return None, False


def _shown(peer: bytes | str) -> str:
    """Return gRPC's text for an address as HOST:PORT."""
    text = peer.decode("utf-8", "replace") if isinstance(peer, bytes) else peer
    return unquote(text).partition(":")[2][:100] or text[:100]
