"""The visitors of the page: tokens in cookies and headers, rights, and checks of forms."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from quire.errors import RefusedError
from quire.recording.addresses import show_address
from quire.replication.tls import is_loopback
from quire.server.audit import who_is
from quire.server.context import Context
from quire.server.tokens import Right, Token

FORBIDDEN: Final = 403
CERTIFICATE: Final = "quire.certificate"
"""The key of a request's scope for the name in the browser's certificate."""
_LASTS_S: Final = 12 * 3600
_MOST: Final = 10_000
_MOST_NOTED: Final = 1000
_KEY: Final = 43
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(slots=True)
class _SignedIn:
    token: Token
    until_s: float


@dataclass(frozen=True, slots=True)
class Visitor:
    """
    The client that requests a page.

    Attributes:
        token: The token that it presented, if that is valid now.
        peer: The address from which the request came.
        key: The value of its cookie, or of the cookie that the response sets.
        is_new: Whether the response must set the cookie.
        by_header: Whether the token came in a header, which another site cannot send.
        is_admitted: Whether the token is valid, or none is needed.
        certificate: The name in the browser's certificate.

    """

    token: Token | None
    peer: str
    key: str = ""
    is_new: bool = False
    by_header: bool = False
    is_admitted: bool = False
    certificate: str = ""

    def may(self, right: Right, topic: str) -> bool:
        """Return whether the visitor has a right to a queue."""
        return self.is_admitted and (self.token is None or self.token.may(right, topic))

    @property
    def may_create(self) -> bool:
        """Whether the visitor may create queues of any name."""
        return self.is_admitted and (self.token is None or bool(self.token.rights.get("create")))


class Visitors:
    """
    The visitors of one server's page.

    Args:
        context: What all clients of the server share.
        address: The address at which the page is served.
        is_secure: Whether it is served with TLS.

    """

    def __init__(self, context: Context, address: tuple[str, int], *, is_secure: bool) -> None:
        self._context, self._is_secure = context, is_secure
        self._is_local = is_loopback(address[0])
        prefix = "__Host-quire" if is_secure else "quire"
        self._cookie: Final = f"{prefix}-{address[1]}"  # browsers do not separate cookies by port
        self._secret = secrets.token_bytes(32)
        self._signed_in: OrderedDict[str, _SignedIn] = OrderedDict()
        self._noted: OrderedDict[tuple[str, str], set[tuple[Right, str]]] = OrderedDict()

    def of(self, request: Request) -> Visitor:
        """Return the visitor that sent a request."""
        peer = show_address(request.client or ("?", 0))
        certificate: str = request.scope.get(CERTIFICATE, "")
        given = request.cookies.get(self._cookie, "")
        is_new = len(given) != _KEY or not given.isascii()
        key = secrets.token_urlsafe(32) if is_new else given
        header = request.headers.get("authorization", "")
        by_header = header[:7].lower() == "bearer "
        if by_header:
            shown = header[7:].strip().encode("utf-8", "replace")
            token = self._context.find(shown)
            if token is None:
                unknown = Visitor(None, peer, certificate=certificate)
                self._context.note("wrong token", unknown, "")
        else:
            token = self._token_of(key)
        is_admitted = token is not None or (not by_header and not self._context.needs_token())
        return Visitor(
            token,
            peer,
            key,
            is_new=is_new,
            by_header=by_header,
            is_admitted=is_admitted,
            certificate=certificate,
        )

    def _token_of(self, key: str) -> Token | None:
        name = _hashed(key)
        found, tokens = self._signed_in.get(name), self._context.tokens
        if found is None or tokens is None:
            return None
        if time.monotonic() < found.until_s and tokens.still(found.token):
            return found.token
        del self._signed_in[name]
        return None

    def still(self, visitor: Visitor) -> bool:
        """Return whether a visitor that was admitted would still be admitted."""
        tokens = self._context.tokens
        if visitor.token is None:
            return not self._context.needs_token()
        return tokens is not None and tokens.still(visitor.token)

    def sign_in(self, visitor: Visitor, token: str, response: Response) -> bool:
        """Admit a visitor by a token and set a new cookie; return whether the token is valid."""
        found = self._context.find(token.strip().encode("utf-8", "replace"))
        if found is None:
            self._context.note("wrong token", visitor, "")
            return False
        key = secrets.token_urlsafe(32)
        while len(self._signed_in) >= _MOST:
            self._signed_in.popitem(last=False)
        self._signed_in[_hashed(key)] = _SignedIn(found, time.monotonic() + _LASTS_S)
        self._set(response, key)
        self._context.note("authenticated", Visitor(found, visitor.peer), "")
        return True

    def sign_out(self, visitor: Visitor, response: Response) -> None:
        """Sign a visitor out."""
        self._signed_in.pop(_hashed(visitor.key), None)
        self._set(response, secrets.token_urlsafe(32))

    def keep(self, visitor: Visitor, response: Response) -> None:
        """Set the cookie of a visitor that has none: forms require it."""
        if visitor.is_new and not visitor.by_header:
            self._set(response, visitor.key)

    def _set(self, response: Response, key: str) -> None:
        response.set_cookie(
            self._cookie,
            key,
            max_age=_LASTS_S,
            path="/",
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
        )

    def form_key(self, visitor: Visitor) -> str:
        """Return the key in this visitor's forms, which no other site knows."""
        return hmac.new(self._secret, visitor.key.encode(), hashlib.sha256).hexdigest()

    def check_form(self, request: Request, visitor: Visitor, given: str) -> None:
        """
        Check that a form comes from a page that was sent to this visitor.

        Raises:
            RefusedError: The form comes from another page or another site.

        """
        site = request.headers.get("sec-fetch-site", "same-origin")
        if site not in {"same-origin", "none"}:
            raise RefusedError("the form was sent by another site")
        if visitor.by_header:
            return
        wanted = self.form_key(visitor)
        if visitor.is_new or not hmac.compare_digest(wanted.encode(), given.encode()):
            raise RefusedError(
                "the form does not belong to this page, or is too old: load the page again"
            )

    def check_host(self, request: Request) -> None:
        """
        Refuse requests of other sites whose names were made to resolve to this machine.

        Raises:
            RefusedError: The page is served to this machine only, without a token, and the
                request's host is neither ``localhost`` nor an IP address.

        """
        if not self._is_local or self._context.needs_token():
            return
        try:
            host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        except ValueError:
            host = ""
        if host != "localhost" and not _is_number(host):
            raise RefusedError(
                "without a token, the page is available only as localhost or by an IP address"
            )

    def check(self, visitor: Visitor, right: Right, topic: str) -> None:
        """
        Check that a visitor has a right to a queue.

        Raises:
            HTTPException: The token does not have this right.

        """
        if not visitor.may(right, topic):
            self._context.note("refused", visitor, f"{right} {topic}")
            raise HTTPException(FORBIDDEN, f"the token may not {right} this queue: name={topic}")
        self._note(visitor, right, topic)

    def _note(self, visitor: Visitor, right: Right, topic: str) -> None:
        """Record the first use of a right to a queue by a visitor."""
        who = (visitor.peer.rpartition(":")[0], who_is(visitor))
        noted = self._noted.setdefault(who, set())
        self._noted.move_to_end(who)
        if (right, topic) in noted:
            return
        if len(noted) >= _MOST_NOTED:
            noted.clear()
        noted.add((right, topic))
        while len(self._noted) > _MOST_NOTED:
            self._noted.popitem(last=False)
        self._context.note(right, visitor, topic)


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
