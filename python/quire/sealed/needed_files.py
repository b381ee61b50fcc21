"""The files that messages need to be read: wrapped keys and dictionaries (``docs/format.md``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Final

from quire._common.durable import SafeFolder
from quire.errors import EncryptionError, UnsafePathError
from quire.sealed import key_file
from quire.sealed.key_file import DICTIONARY, KEYS, KeyFile

CURRENT: Final = "dictionary.quire"
"""Names the dictionary to compress with."""
DICTIONARY_LIMIT: Final = 1 << 20
"""The longest dictionary, in bytes, before it is encrypted."""
NEEDED_LIMIT: Final = (1 << 20) + 1024
"""The longest of these files, in bytes."""
_NAMES: Final = (KEYS, CURRENT)
_DIGITS: Final = 7
_WAIT_S: Final = 10.0
_Stamp = tuple[int, int, int]


def is_needed(name: str) -> bool:
    """Return whether a name is that of wrapped keys, or of a dictionary."""
    number = name.removesuffix(DICTIONARY)
    is_number = len(number) == _DIGITS and not set(number) - set("0123456789abcdef")
    return name in _NAMES or (number != name and is_number)


def read_needed(folder: SafeFolder) -> dict[str, bytes]:
    """Return the content of such files by their names; untrusted ones are left out."""
    found = dict[str, bytes]()
    for name in _in_order(folder.names()):
        with suppress(OSError, UnsafePathError):
            found[name] = folder.read(name, NEEDED_LIMIT)
    return found


def bring_needed(source: SafeFolder, target: SafeFolder) -> list[str]:
    """
    Put the files that messages need beside them where these are taken to; return their names.

    Raises:
        EncryptionError: The target has the wrapped keys of another queue, or its wrapped keys are
            damaged.

    """
    found = read_needed(source)
    for name, content in found.items():
        put_needed(target, name, content)
    return [*found]


def _in_order(names: Iterable[str]) -> list[str]:
    """Return those that are needed; dictionaries come before what names one of them."""
    return sorted(filter(is_needed, names), key=lambda name: (name == CURRENT, name))


def put_needed(folder: SafeFolder, name: str, content: bytes) -> None:
    """
    Put such a file beside messages, in place of an older one.

    Data keys that only the older one has stay: messages by them may be here, or be put aside.

    Raises:
        EncryptionError: The directory has the wrapped keys of another queue, or its wrapped keys
            are damaged.

    """
    if folder.has(name) and folder.read(name, NEEDED_LIMIT) == content:
        return
    keys = key_file.parse(content, folder.path / KEYS) if name == KEYS else None
    with folder.locked(key_file.LOCK, _WAIT_S):
        folder.sweep(name)
        if keys is not None and folder.has(KEYS):
            content = _merged(folder, keys)
        folder.replace(name, content)


def _merged(folder: SafeFolder, keys: KeyFile) -> bytes:
    """Return wrapped keys with those that a directory has already, of the same queue."""
    file, found = folder.path / KEYS, key_file.read(folder)
    if found.queue != keys.queue:
        raise EncryptionError(
            f"the directory has the wrapped keys of another queue: file={file}"
            " (use a directory of its own)"
        )
    content = keys.merged(found).to_bytes()
    key_file.parse(content, file)  # there may be too many
    return content


class ChangedFiles:
    """
    What of these files a peer was not sent yet.

    Args:
        path: The queue's directory.
        opened: Opens that directory.

    """

    def __init__(self, path: str, opened: Callable[[], AbstractContextManager[SafeFolder]]) -> None:
        self._paths = [os.path.join(path, name) for name in _NAMES]  # noqa: PTH118 - looked at often
        self._opened = opened
        self._seen: list[_Stamp | None] = [None, None]
        self._sent: dict[str, bytes] = {}

    def news(self) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents that have changed: cheap where none has."""
        seen = [_stamp(path) for path in self._paths]
        if seen == self._seen:
            return
        self._seen = seen
        with self._opened() as folder:
            found = read_needed(folder)
        for name, content in found.items():
            if self._sent.get(name) != content:
                self._sent[name] = content
                yield name, content


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
