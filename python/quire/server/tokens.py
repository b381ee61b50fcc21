"""
Tokens: which clients may use a server, and for what.

The file has a line of JSON for each token, with a hash instead of the token itself.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from quire._common.durable import PRIVATE, SafeFolder
from quire.errors import OptionsError
from quire.server.topic_names import matches

Right: TypeAlias = Literal["read", "append", "create", "manage"]
RIGHTS: Final[tuple[Right, ...]] = ("read", "append", "create", "manage")
_HEADER: Final = {"quire": "tokens", "version": 1}
_LONGEST: Final = 1 << 20
_NAME: Final = 64
_LOCK: Final = ".lock"
_LOCK_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Token:
    """
    The record of a token, from :meth:`TokenFile.tokens`.

        names = [it.name for it in TokenFile("tokens").tokens()]

    Attributes:
        name: Its name in lists and in the audit log.
        sha256: The hash of the token, in hexadecimal.
        created_s: When it was created, in seconds since 1970.
        expires_s: When it expires; None: never.
        rights: For each right, the patterns of the queues to which it applies.

    """

    name: str
    sha256: str
    created_s: int
    expires_s: int | None
    rights: dict[Right, tuple[str, ...]]

    def may(self, right: Right, topic: str) -> bool:
        """Return whether it grants a right to a queue."""
        return matches(topic, self.rights.get(right, ()))

    def is_valid(self, now_s: float) -> bool:
        """Return whether it has not expired."""
        return self.expires_s is None or now_s < self.expires_s

    def line(self) -> str:
        """Return its line of the file."""
        found: dict[str, object] = {
            "name": self.name,
            "sha256": self.sha256,
            "created": self.created_s,
            "expires": self.expires_s,
        }
        found |= {right: list(self.rights.get(right, ())) for right in RIGHTS}
        return json.dumps(found)


class TokenFile:
    """
    A file of tokens: it is read again when it changes, and replaced durably.

    Args:
        path: The file; it need not exist.

    Examples:
        >>> from quire.server import TokenFile
        >>> tokens = TokenFile("tokens")
        >>> token = tokens.add("reader", {"read": ("prices/*",)})
        >>> found = tokens.find(token.encode())
        >>> found.name, found.may("read", "prices/eur"), found.may("append", "prices/eur")
        ('reader', True, False)
        >>> [it.is_valid(0.0) for it in tokens.tokens()], tokens.is_required, tokens.still(found)
        ([True], True, True)
        >>> tokens.revoke("reader")
        >>> tokens.find(token.encode()) is None
        True

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path).absolute()
        self._seen: tuple[int, ...] | None = None
        self._tokens: tuple[Token, ...] = ()

    def tokens(self) -> tuple[Token, ...]:
        """
        Return the tokens that are in the file now.

        Raises:
            OptionsError: The file is not a file of tokens, or other users can access it.

        """
        try:
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            if self._tokens:  # a missing file admits no client
                raise OptionsError(f"the file of tokens is missing: tokens={self.path}") from None
            return ()
        seen = (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)
        if seen != self._seen:
            self._tokens = self._read()
            self._seen = seen
        return self._tokens

    def find(self, token: bytes) -> Token | None:
        """
        Return the record of a token that is valid now, else None.

        Raises:
            OptionsError: The file cannot be used.

        """
        wanted, result = hashlib.sha256(token).hexdigest(), None
        for one in self.tokens():  # all of them, whichever it is
            if hmac.compare_digest(one.sha256, wanted):
                result = one
        return result if result is not None and result.is_valid(time.time()) else None

    def still(self, token: Token) -> bool:
        """Return whether a token was neither revoked nor changed, and has not expired."""
        try:
            return token in self.tokens() and token.is_valid(time.time())
        except OptionsError:
            return False

    def add(
        self, name: str, rights: dict[Right, tuple[str, ...]], expires_in_s: float | None = None
    ) -> str:
        """
        Create a token and return it: the token itself is not stored.

        Raises:
            OptionsError: The name is taken or not valid, or no right is given.

        """
        if not name or len(name) > _NAME or not name.isprintable() or name != name.strip():
            raise OptionsError(f"invalid name of a token: name={name!r} (1 to {_NAME} characters)")
        if not any(rights.values()):
            raise OptionsError(
                "a token without any right: give --read, --append, --create or --manage"
            )
        made, now = secrets.token_urlsafe(32), int(time.time())
        expires = None if expires_in_s is None else int(now + expires_in_s)
        hashed = hashlib.sha256(made.encode()).hexdigest()
        with _folder(self.path) as folder, folder.locked(f".{self.path.name}{_LOCK}", _LOCK_WAIT_S):
            known = self.tokens()
            if any(it.name == name for it in known):
                raise OptionsError(f"a token of this name exists: name={name} (revoke it first)")
            self._write(folder, (*known, Token(name, hashed, now, expires, rights)))
        return made

    def revoke(self, name: str) -> None:
        """
        Remove a token: from now on it is refused, also on connections that use it.

        Raises:
            OptionsError: There is no token of this name.

        """
        with _folder(self.path) as folder, folder.locked(f".{self.path.name}{_LOCK}", _LOCK_WAIT_S):
            known = self.tokens()
            left = tuple(it for it in known if it.name != name)
            if len(left) == len(known):
                raise OptionsError(f"no such token: name={name} tokens={self.path}")
            self._write(folder, left)

    def _write(self, folder: SafeFolder, tokens: tuple[Token, ...]) -> None:
        # An empty file would admit every client, so the header shows that there were tokens.
        lines = [json.dumps(_HEADER), *(it.line() for it in tokens)]
        folder.replace(self.path.name, "".join(f"{it}\n" for it in lines).encode())
        self.path.chmod(0o600)
        self._seen = None

    def _read(self) -> tuple[Token, ...]:
        with _folder(self.path) as folder:
            found = folder.stat(self.path.name)
            if found is not None and (found.st_mode & 0o077 or found.st_uid not in _OWNERS()):
                raise OptionsError(
                    f"other users can access the file of tokens: tokens={self.path}"
                    f" mode={found.st_mode & 0o777:o} (chmod 600)"
                )
            text = folder.read(self.path.name, _LONGEST)
        try:
            first, *rest = [json.loads(line) for line in text.decode().splitlines()] or [None]
            tokens = tuple(map(_token, rest))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise OptionsError(f"not a file of tokens: tokens={self.path} error={error}") from None
        if first != _HEADER:
            raise OptionsError(f"not a file of tokens: tokens={self.path} (its first line)")
        return tokens

    @property
    def is_required(self) -> bool:
        """
        Whether a token is required: the file is there, even if all tokens were revoked.

        Raises:
            OptionsError: The file cannot be used.

        """
        self.tokens()
        return self._seen is not None


def default_file() -> Path:
    """Return the default file of tokens."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home, "quire", "tokens")


def _OWNERS() -> tuple[int, ...]:  # noqa: N802 - the effective user can change
    return (0, os.geteuid())


def _folder(path: Path) -> SafeFolder:
    return SafeFolder.at(path.parent, PRIVATE)


def _token(found: dict[str, Any]) -> Token:
    expires = found["expires"]
    rights: dict[Right, tuple[str, ...]] = {
        right: tuple(map(str, cast("list[Any]", found[right]))) for right in RIGHTS
    }
    return Token(
        str(found["name"]),
        str(found["sha256"]),
        int(found["created"]),
        None if expires is None else int(expires),
        rights,
    )
