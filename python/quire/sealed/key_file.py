"""``keys.quire``: the data keys of an encrypted queue, wrapped by keys of the user."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from quire._common.durable import SafeFolder
from quire._native import Cipher, encrypted_dictionary, rewrap_key, wrap_new_key
from quire.errors import EncryptionError, UnsafePathError
from quire.sealed.key_ring import KeyRing, default_allows_plain, default_ring, may_lack_key, ring_of
from quire.sealed.key_texts import check_name

KEYS: Final = "keys.quire"
DICTIONARY: Final = ".dictionary.quire"
"""What names of dictionaries end in: they are encrypted as the messages are."""
LOCK: Final = "quire.keys.lock"
"""Held by whatever changes ``keys.quire``; Java ignores the file."""
_QUEUE_ID_LEN: Final = 16
_WRAPPED_LEN: Final = 60
_LONGEST: Final = 1 << 20
_MOST: Final = 4096
_LARGEST: Final = 2**32
_NUMBERS: Final = 2**20
"""The most that a data key's number is above the last one: there may be 4,096 of them."""
_WAIT_S: Final = 10.0
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key, and the name of the key that wraps it."""

    number: int
    name: str
    wrapped: bytes


@dataclass(frozen=True, slots=True)
class KeyFile:
    """
    What is in ``keys.quire``.

    Attributes:
        queue: The random id of the queue.
        keys: The data keys, by their numbers.

    """

    queue: bytes
    keys: tuple[WrappedKey, ...]

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        rows = [
            {"name": it.name, "number": it.number, "wrapped": it.wrapped.hex()} for it in self.keys
        ]
        found = {"version": _VERSION, "queue": self.queue.hex(), "keys": rows}
        return json.dumps(found, indent=1).encode() + b"\n"

    def cipher(
        self,
        ring: KeyRing,
        current: int | None = None,
        *,
        allow_plain: bool,
        file: Path | None = None,
    ) -> Cipher:
        """Return the cipher of the data keys that a key ring opens, including later ones."""
        records = [(it.number, it.wrapped, ring.candidates(it.name)) for it in self.keys]
        return Cipher(
            self.queue,
            records,
            added=None if file is None else (file.absolute(), ring.candidates(ring.current)),
            current=current,
            expires_ms=ring.expires_ms,
            allow_plain=allow_plain,
        )

    def merged(self, other: KeyFile) -> KeyFile:
        """Return it with the data keys that only another file of the same queue has."""
        numbers = {it.number for it in self.keys}
        more = [it for it in other.keys if it.number not in numbers]
        return replace(self, keys=tuple(sorted((*self.keys, *more), key=lambda it: it.number)))

    def with_new_key(self, ring: KeyRing) -> KeyFile:
        """
        Return it with one data key more, wrapped by the current key.

        Its number is higher than the others, and not the next one: two copies of a queue that go
        on apart, and come together again, would have different keys by one number.
        """
        ring.check_current()
        last = max((it.number for it in self.keys), default=0)
        number = last + 1 + secrets.randbelow(_NUMBERS) if last else 1
        wrapped = wrap_new_key(ring.current_key, self.queue, number)
        return replace(self, keys=(*self.keys, WrappedKey(number, ring.current, wrapped)))


def read(folder: SafeFolder) -> KeyFile:
    """
    Return the wrapped keys of a queue.

    Raises:
        EncryptionError: The file is not a valid ``keys.quire``.

    """
    file = folder.path / KEYS
    try:
        content = folder.read(KEYS, _LONGEST)
    except UnsafePathError as error:
        raise _damaged(file, error) from None
    return parse(content, file)


def parse(content: bytes, file: Path) -> KeyFile:
    """
    Return what a file of wrapped keys says.

    Args:
        content: It.
        file: Where it is, or is to be, for errors.

    Raises:
        EncryptionError: The content is not that of a valid ``keys.quire``.

    """
    try:
        return _parsed(content)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(file, error) from None


def _damaged(file: Path, why: Exception) -> EncryptionError:
    return EncryptionError(
        f"the wrapped keys are damaged: file={file} reason={why!s:.200}"
        " (restore the file from a copy of the queue)"
    )


def _parsed(content: bytes) -> KeyFile:
    found = cast("dict[str, Any]", json.loads(content))
    if found["version"] != _VERSION:
        raise ValueError(f"version={found['version']!r}")
    rows = cast("list[dict[str, Any]]", found["keys"])
    queue = bytes.fromhex(found["queue"])
    keys = tuple(
        WrappedKey(row["number"], check_name(row["name"]), bytes.fromhex(row["wrapped"]))
        for row in rows
    )
    numbers = [it.number for it in keys]
    is_right = (
        len(queue) == _QUEUE_ID_LEN
        and 0 < len(keys) <= _MOST
        and numbers == sorted({*numbers})
        and all(type(it) is int and 0 < it < _LARGEST for it in numbers)
        and all(len(it.wrapped) == _WRAPPED_LEN for it in keys)
    )
    if not is_right:
        raise ValueError("expected an id, and data keys in the order of their numbers")
    return KeyFile(queue, keys)


def dictionary_file(number: int) -> str:
    """Return the name of a dictionary's file."""
    return f"{number:07x}{DICTIONARY}"


def is_encrypted(path: str | os.PathLike[str]) -> bool:
    """Return whether the queue at a path, or around a roll file, is encrypted."""
    place = os.fspath(path)
    return os.path.lexists(os.path.join(place, KEYS)) or (  # noqa: PTH118 - also of bytes
        place.endswith((".cq4", ".zst"))
        and os.path.lexists(os.path.join(os.path.dirname(place), KEYS))  # noqa: PTH118, PTH120
    )


def check_letters(source: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """
    Check that dead letters, which would not be encrypted at a path, may go there.

    Args:
        source: The queue that they come from.
        path: The queue for them, which is opened without a key.

    Raises:
        EncryptionError: The queue of the dead letters, or the one they come from, is encrypted.

    """
    if is_encrypted(source) or is_encrypted(path):
        raise EncryptionError(
            f"dead letters would not be encrypted: path={os.fspath(source)}"
            f" dead_letter={os.fspath(path)} (give an open queue: quire.open(path, key=...))"
        )


def options_for(
    path: str | os.PathLike[str],
    *,
    key: object = None,
    allow_plain: bool = False,
    may_write: bool = False,
    make: Callable[[], None] | None = None,
) -> dict[str, object]:
    """
    Return the native options by which a queue is opened, so that its messages are decrypted.

    Args:
        path: The queue's directory, or one roll file.
        key: 32 bytes, a key ring, or None.
        allow_plain: Also read messages that are not encrypted.
        may_write: The queue is opened to write, and data keys may be added.
        make: Creates the queue if it does not exist.

    Raises:
        EncryptionError: The key is missing or wrong, or the queue is not encrypted.

    """
    found = is_encrypted(path)
    if key is None:
        if not found:
            return {}
        key = default_ring()
        if key is None:
            if may_lack_key():
                return {"without_key": True}
            raise EncryptionError(
                f"the queue is encrypted: path={os.fspath(path)} (open it with key=, or call what"
                " opens it within KeyRing.as_default())"
            )
        allow_plain = allow_plain or default_allows_plain()
    ring = ring_of(key)
    if not found and (not may_write or make is None):
        raise EncryptionError(
            f"the queue is not encrypted: path={os.fspath(path)} (open it without a key)"
        )
    if not found and make is not None:
        ring.check_current()
        make()
        _create(Path(path), ring, allow_plain=allow_plain)
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    return {"cipher": _cipher(folder, ring, allow_plain=allow_plain, may_write=may_write)}


def _create(path: Path, ring: KeyRing, *, allow_plain: bool) -> None:
    with SafeFolder.at(path) as folder, folder.locked(LOCK, _WAIT_S):
        folder.sweep(KEYS)
        if folder.has(KEYS):
            return
        if not allow_plain and (folder.files(".cq4") or folder.files(".zst")):
            raise EncryptionError(
                f"the queue holds messages that are not encrypted: path={path}"
                " (allow_plain=True reads them as they are, and encrypts those that follow)"
            )
        made = KeyFile(secrets.token_bytes(_QUEUE_ID_LEN), ()).with_new_key(ring)
        folder.replace(KEYS, made.to_bytes())
        _encrypt_dictionaries(folder, made.cipher(ring, 1, allow_plain=True))


def _encrypt_dictionaries(folder: SafeFolder, cipher: Cipher) -> None:
    """Encrypt what messages from before were compressed with: plain ones are not read any more."""
    for name in folder.files(DICTIONARY):
        number, stored = encrypted_dictionary(folder.read(name), cipher)
        if name == dictionary_file(number):
            folder.replace(name, stored)


def cipher_of(path: str | os.PathLike[str], ring: KeyRing) -> Cipher:
    """
    Return what encrypts and decrypts for an encrypted queue that is written to.

    Raises:
        EncryptionError: No key of *ring* opens it.

    """
    return _cipher(Path(path), ring, allow_plain=False, may_write=True)


def _cipher(path: Path, ring: KeyRing, *, allow_plain: bool, may_write: bool) -> Cipher:
    with SafeFolder.at(path) as folder:
        file = read(folder)
        opened = file.cipher(ring, allow_plain=allow_plain).numbers
        if not opened:
            raise EncryptionError(
                f"none of the keys opens the queue: path={path}"
                f" keys={ring.names} wrapped_by={sorted({it.name for it in file.keys})}"
            )
        if not may_write:
            return file.cipher(ring, allow_plain=allow_plain, file=path / KEYS)
        current = _current(file, ring, opened)
        if current is None:
            file, current = _with_current(folder, ring)
        return file.cipher(ring, current, allow_plain=allow_plain, file=path / KEYS)


def _current(file: KeyFile, ring: KeyRing, opened: Sequence[int]) -> int | None:
    """Return the newest data key that the current key wraps."""
    only = KeyRing({ring.current: ring.current_key}, current=ring.current)
    own = file.cipher(only, allow_plain=False).numbers
    return max((it for it in own if it in opened), default=None)


def _with_current(folder: SafeFolder, ring: KeyRing) -> tuple[KeyFile, int]:
    """Add a data key that the current key wraps, unless another process has meanwhile."""
    with folder.locked(LOCK, _WAIT_S):
        folder.sweep(KEYS)
        file = read(folder)
        current = _current(file, ring, [it.number for it in file.keys])
        if current is None:
            file = file.with_new_key(ring)
            current = file.keys[-1].number
            folder.replace(KEYS, file.to_bytes())
        return file, current


def rewrap(path: str | os.PathLike[str], ring: KeyRing, new: KeyRing) -> int:
    """
    Wrap the data keys of a queue by another key; no message is touched.

    The old key can no longer open the queue. Processes that have it open continue.

    Args:
        path: The queue's directory.
        ring: The keys that wrap data keys now: all of them have to be there.
        new: The key to wrap them with.

    Returns:
        How many data keys were wrapped.

    Raises:
        EncryptionError: The queue is not encrypted, a data key is wrapped by another key, or the
            new key has expired.
        LockHeldError: Another process changes the keys.

    """
    new.check_current()
    with SafeFolder.at(path) as folder:
        if not folder.has(KEYS):
            raise EncryptionError(f"the queue is not encrypted: path={os.fspath(path)}")
        with folder.locked(LOCK, _WAIT_S):
            folder.sweep(KEYS)
            file = read(folder)
            keys = tuple(_rewrapped(file, it, ring, new) for it in file.keys)
            folder.replace(KEYS, replace(file, keys=keys).to_bytes())
    return len(keys)


def _rewrapped(file: KeyFile, key: WrappedKey, ring: KeyRing, new: KeyRing) -> WrappedKey:
    for old in ring.candidates(key.name):
        found = rewrap_key(old, new.current_key, file.queue, key.number, key.wrapped)
        if found is not None:
            return WrappedKey(key.number, new.current, found)
    raise EncryptionError(
        f"a data key is wrapped by another key: data_key={key.number} wrapped_by={key.name}"
        f" keys={ring.names}"
    )
