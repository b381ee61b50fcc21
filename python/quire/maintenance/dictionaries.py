"""Training a dictionary on the messages of a queue, for ``compression="zstd"``."""

from __future__ import annotations

from itertools import islice
from os import PathLike
from typing import Any, Final, NamedTuple, cast

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire._native import train_dictionary
from quire.formats.adapters import require_journal
from quire.handles.journal.queue import JournalQueue
from quire.opening.opener import open_whole
from quire.sealed.key_file import dictionary_file, options_for
from quire.sealed.key_ring import KeyRing
from quire.sealed.needed_files import CURRENT, DICTIONARY_LIMIT, put_needed

_SAMPLES: Final = 10_000
_SIZE: Final = 1 << 15
_SAMPLED_BYTES: Final = 64 << 20


class TrainedDictionary(NamedTuple):
    """
    A dictionary that was trained.

    Attributes:
        number: The number by which messages refer to it.
        size: The length of its file in bytes.
        samples: How many messages it was trained on.

    Examples:
        >>> quire.maintenance.TrainedDictionary(0x1234567, 32768, 10000).samples
        10000

    """

    number: int
    size: int
    samples: int


def compress_dictionary(
    path: str | PathLike[str],
    *,
    samples: int = _SAMPLES,
    size: int = _SIZE,
    key: bytes | KeyRing | None = None,
) -> TrainedDictionary:
    """
    Train a dictionary on messages of a queue, which makes short messages much shorter.

    Appenders use it if the queue is opened with ``compression="zstd"`` from then on. The newest
    messages are the samples. The dictionary of an encrypted queue is encrypted, too.

    Args:
        path: The queue's directory.
        samples: The most messages to train it on.
        size: The most bytes that it may have before it is encrypted.
        key: The key of an encrypted queue.

    Raises:
        ValueError: The messages are too few, or have too little in common.
        EncryptionError: The queue is encrypted, and the key is missing or wrong.
        UnsupportedError: The queue has another format.

    Examples:
        >>> with quire.open("quotes") as quotes, quotes.appender() as quoting:
        ...     for number in range(2000):
        ...         _ = quoting.write_map({"symbol": "EURUSD", "bid": number, "ask": number + 1})
        >>> quire.maintenance.compress_dictionary("quotes").samples
        2000

    """
    place = arguments.path("path", path)
    require_journal(place, "dictionaries")
    arguments.whole(8, 10_000_000)("samples", samples)
    arguments.whole(256, DICTIONARY_LIMIT)("size", size)
    found = _newest(place, samples, key)
    options = cast("dict[str, Any]", options_for(place, key=key, may_write=True))
    number, made = train_dictionary(found, longest=size, cipher=options.get("cipher"))
    with SafeFolder.at(place) as folder:
        put_needed(folder, dictionary_file(number), made)
        put_needed(folder, CURRENT, f"{number:07x}\n".encode())
    return TrainedDictionary(number, len(made), len(found))


def _newest(place: str | PathLike[str], samples: int, key: bytes | KeyRing | None) -> list[bytes]:
    options = {} if key is None else {"key": key}
    opened = cast("JournalQueue", open_whole(place, **options))
    with opened as queue, queue.tailer() as tailer:
        tailer.direction = "backward"
        tailer.to_end()
        found, left = list[bytes](), _SAMPLED_BYTES
        for message in islice(tailer.payloads(), samples):
            left -= len(message)
            if left < 0:
                break
            found.append(bytes(message))
        return found
