"""The keys of the user, by their names, and which of them this process uses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, NoReturn, Self, TypeGuard, cast

from quire._common import arguments
from quire.errors import EncryptionError
from quire.sealed.key_texts import KEY_LEN, KeyText, check_name, parse_keys, read_key_file, shown

DEFAULT: Final = "default"
"""The name of a key that was given without one."""
_COMMAND_S: Final = 60.0


class KeyRing:
    """
    Keys by their names, for ``quire.open(path, key=)``.

    A data key encrypts messages, and *current* wraps it; the other keys open data keys that they
    wrapped before. A key ring is neither printed nor pickled: each process reads the keys from
    their source.

    Args:
        keys: 32 random bytes for each name.
        current: The name of the key to encrypt with.
        expires: When *current* begins no cycle any more, with a time zone; None: never. Reading
            goes on.

    Raises:
        ValueError: A key is not 32 bytes long, a name is empty or too long, *current* names no key,
            or *expires* has no time zone.

    Examples:
        >>> import secrets
        >>> ring = quire.KeyRing({"2026": secrets.token_bytes(32)}, current="2026")
        >>> ring
        KeyRing(names=['2026'], current='2026')
        >>> with quire.open("vault", key=ring) as vault, vault.appender() as appender:
        ...     index = appender.write_text("secret")
        >>> quire.open("vault")
        Traceback (most recent call last):
        quire.errors.EncryptionError: the queue is encrypted: path=...

    """

    __slots__ = ("_fetch", "_keys", "current", "expires")

    def __init__(
        self, keys: Mapping[str, bytes], *, current: str, expires: datetime | None = None
    ) -> None:
        self._keys: Final = {check_name(name): _checked(key) for name, key in keys.items()}
        self._fetch: Callable[[str], bytes] | None = None
        self.current: Final = current
        if current not in self._keys:
            raise ValueError(f"no key has this name: current={shown(current)} names={self.names}")
        if expires is not None and expires.tzinfo is None:
            raise ValueError(f"a time without a time zone: expires={expires}")
        self.expires: Final = expires

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], name: str = DEFAULT, *, expires: datetime | None = None
    ) -> Self:
        r"""
        Read one key, or a key ring, from a file.

        One key is 32 bytes, raw, in hexadecimal or in base64. A key ring is TOML with *current*,
        *expires* if it has an end, and a table *keys*; only its owner may access it.

        Args:
            path: The file.
            name: The name for a single key; a key ring has names of its own.
            expires: When *current* begins no cycle any more, whatever a key ring says.

        Raises:
            EncryptionError: The file holds neither a key nor a key ring, or a key ring that others
                may read or write.

        Examples:
            >>> import secrets
            >>> from pathlib import Path
            >>> old, new = secrets.token_hex(32), secrets.token_hex(32)
            >>> file = Path("keys.toml")
            >>> file.touch(0o600)
            >>> text = f'current = "2027"\n[keys]\n2026 = "{old}"\n2027 = "{new}"\n'
            >>> file.write_text(text) > 0
            True
            >>> quire.KeyRing.from_file("keys.toml")
            KeyRing(names=['2026', '2027'], current='2027')

        """
        return cls._of(read_key_file(path, name), expires)

    @classmethod
    def from_environment(
        cls, variable: str, name: str = DEFAULT, *, expires: datetime | None = None
    ) -> Self:
        """
        Take one key, in hexadecimal or in base64, or a key ring from an environment variable.

        Raises:
            EncryptionError: The variable is not set, or holds neither a key nor a key ring.

        """
        content = os.environb.get(os.fsencode(arguments.text("variable", variable)))
        if content is None:
            raise EncryptionError(f"the environment has no key: variable={variable}")
        return cls._of(parse_keys(content, f"variable={variable}", name), expires)

    @classmethod
    def from_command(
        cls, command: Sequence[str], name: str = DEFAULT, *, expires: datetime | None = None
    ) -> Self:
        """
        Take keys from the output of a command, for example one that asks a key service.

        It prints one key, raw, in hexadecimal or in base64, or a key ring.

        Raises:
            EncryptionError: The command failed, or printed neither a key nor a key ring.

        """
        program, *_ = words = _words(command)
        try:
            ran = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=_COMMAND_S)  # noqa: S603 - the user names it
        except (subprocess.SubprocessError, OSError) as error:
            raise EncryptionError(
                f"no key from a command: {type(error).__name__} {program=}"
            ) from None
        return cls._of(parse_keys(ran.stdout, f"command={program}", name), expires)

    @classmethod
    def from_hook(
        cls, fetch: Callable[[str], bytes], *, current: str, expires: datetime | None = None
    ) -> Self:
        """
        Fetch keys by their names with a function, for example one that asks a key service.

        It is called for *current* at once, and for another name when a data key is found that this
        key wraps; never twice for a key that it returned. Any exception but `LookupError` ends the
        call that needed the key.

        Args:
            fetch: Returns the 32 bytes of a key; raises `LookupError` for an unknown name.
            current: The name of the key to encrypt with.
            expires: When that key begins no cycle any more, with a time zone; None: never.

        Raises:
            LookupError: There is no key of the name *current*.
            ValueError: A key is not 32 bytes long.

        Examples:
            >>> import secrets
            >>> service = {"2026": secrets.token_bytes(32), "2027": secrets.token_bytes(32)}
            >>> quire.KeyRing.from_hook(service.__getitem__, current="2027")
            KeyRing(names=['2027'], current='2027')

        """
        made = cls({current: fetch(current)}, current=current, expires=expires)
        made._fetch = fetch
        return made

    @classmethod
    def _of(cls, text: KeyText, expires: datetime | None) -> Self:
        return cls(text.keys, current=text.current, expires=expires or text.expires)

    @property
    def names(self) -> list[str]:
        """The names of the keys; for a hook, those that it was asked for."""
        return [*self._keys]

    def _found(self, name: str) -> bytes | None:
        if self._fetch is not None and name not in self._keys:
            check_name(name)
            with suppress(LookupError):
                self._keys[name] = _checked(self._fetch(name))
        return self._keys.get(name)

    def candidates(self, name: str) -> list[bytes]:
        """Return the keys that may have wrapped a data key by this name, the likeliest first."""
        found = self._found(name)
        others = [key for key in self._keys.values() if key is not found]
        return others if found is None else [found, *others]

    @property
    def current_key(self) -> bytes:
        """The key to encrypt with."""
        return self._keys[self.current]

    @property
    def expires_ms(self) -> int | None:
        """When the current key expires, in epoch milliseconds: it begins no cycle after that."""
        return None if self.expires is None else int(self.expires.timestamp() * 1000)

    def check_current(self) -> None:
        """
        Do nothing if the key to encrypt by may wrap data keys.

        Raises:
            EncryptionError: *current* has expired.

        """
        if self.expires is not None and datetime.now(UTC) >= self.expires:
            raise EncryptionError(
                f"the key has expired: name={self.current} expired={self.expires.isoformat()}"
                " (give a newer key as the current one)"
            )

    @contextmanager
    def as_default(self, *, allow_plain: bool = False) -> Generator[None]:
        """
        Within a block, use this key ring for encrypted queues if no key is given.

        It is for functions that take the path of a queue, such as :func:`quire.archive.archive`,
        :func:`quire.prune` or :func:`quire.convert`. It does not apply to other threads, nor to
        tasks that began before.

        Args:
            allow_plain: Also read messages that are not encrypted, such as those of Java.

        Examples:
            >>> import quire.archive, secrets
            >>> ring = quire.KeyRing({"2026": secrets.token_bytes(32)}, current="2026")
            >>> day = quire.ManualClock(1_705_314_600_000)
            >>> with quire.open("vault", key=ring, clock=day) as vault:
            ...     for text in ("attack", "at dawn"):
            ...         _ = vault.appender().write_text(text)
            ...         _ = day.advance(86_400_000)
            >>> with ring.as_default():
            ...     quire.archive.archive("vault", "archive").messages
            1

        """
        arguments.flag("allow_plain", allow_plain)
        token = _default.set((self, allow_plain))
        try:
            yield
        finally:
            _default.reset(token)

    def __repr__(self) -> str:
        """Show names alone."""
        return f"KeyRing(names={self.names}, current={self.current!r})"

    def __reduce__(self) -> NoReturn:
        """Refuse to pickle keys."""
        raise TypeError("keys are not pickled: give each process its key ring")


def check_key(name: str, found: object) -> KeyRing:
    """Check a key, or a key ring."""
    del name
    return ring_of(found)


def ring_of(key: object) -> KeyRing:
    """
    Return the key ring of what was given as a key.

    Raises:
        TypeError: The key is neither 32 bytes nor a key ring.

    """
    if isinstance(key, KeyRing):
        return key
    if isinstance(key, bytes | bytearray | memoryview):
        return KeyRing({DEFAULT: bytes(cast("bytes", key))}, current=DEFAULT)
    raise TypeError(f"key: expected 32 bytes or a quire.KeyRing, not {type(key).__name__}")


def _words(command: object) -> list[str]:
    """Check a command: text would be taken for a list of letters."""
    wanted = "a program and its arguments, such as ['cat', 'key']"
    if not _is_list(command) or not command:
        raise arguments.refusal("command", wanted, command)
    words = [*command]
    wrong = next((it for it in words if not isinstance(it, str | bytes | os.PathLike)), None)
    if wrong is not None:
        raise arguments.refusal("command", wanted, wrong)
    return cast("list[str]", words)


def _is_list(found: object) -> TypeGuard[Sequence[object]]:
    return isinstance(found, Sequence) and not isinstance(found, str | bytes)


def _checked(key: object) -> bytes:
    if not isinstance(key, bytes):
        raise TypeError(f"a key is of bytes, not {type(key).__name__}")
    if len(key) != KEY_LEN:
        raise ValueError(f"a key has {KEY_LEN} bytes: length={len(key)}")
    return key


_structure: Final = ContextVar("_structure", default=False)
_default: Final = ContextVar[tuple[KeyRing, bool] | None]("_default", default=None)


class _OfProcess:
    """The key ring of a command of the command line, for all its threads."""

    ring: KeyRing | None = None
    allow_plain: bool = False
    without_key: bool = False


def default_ring() -> KeyRing | None:
    """Return the key ring of :meth:`KeyRing.as_default`, or else of the command that runs."""
    found = _default.get()
    return _OfProcess.ring if found is None else found[0]


def default_allows_plain() -> bool:
    """Return whether messages that are not encrypted are read with the key ring of a default."""
    found = _default.get()
    return _OfProcess.allow_plain if found is None else found[1]


def use_in_process(ring: KeyRing) -> None:
    """Use a key ring for the rest of a command."""
    _OfProcess.ring = ring


def allow_plain_in_process() -> None:
    """Read messages that are not encrypted for the rest of a command."""
    _OfProcess.allow_plain = True


@contextmanager
def of_command() -> Generator[None]:
    """Open queues as commands do: also without a key, for what is not encrypted in them."""
    _OfProcess.without_key = True
    try:
        yield
    finally:
        _OfProcess.ring = None
        _OfProcess.allow_plain = _OfProcess.without_key = False


@contextmanager
def structure_only() -> Generator[None]:
    """Open encrypted queues without a key: messages are neither read nor appended."""
    token = _structure.set(True)
    try:
        yield
    finally:
        _structure.reset(token)


def may_lack_key() -> bool:
    """Return whether an encrypted queue may be opened without a key."""
    return _structure.get() or _OfProcess.without_key
