"""A queue split into several."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from quire._common import arguments
from quire.errors import UnsupportedError
from quire.formats.adapters import tailer_of
from quire.maintenance.left_out import warn_left_out
from quire.maintenance.results import CycleTimes, Result, empty, working_folder
from quire.opening.discovery import result_path
from quire.opening.opener import open_whole
from quire.ranges.damage import Skipped, messages_of

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with what is being done, how many messages are done, and how many there are."""

_MOST: Final = 256
_LONGEST_NAME: Final = 200
_DIGEST: Final = 32
_BETWEEN_REPORTS: Final = 1024


def split_queue(
    source: str | PathLike[str],
    dest: str | PathLike[str],
    key: Callable[[Any], str | None],
    *,
    progress: Progress | None = None,
    skipped: Skipped | None = None,
) -> dict[str, int]:
    """
    Write each message of a queue to one of several queues.

    Messages keep their bytes and their order; metadata is left out. *dest* appears when all queues
    are complete, with a Chronicle Queue for each name.

    Args:
        source: A queue of any format. Nothing of it is changed.
        dest: A directory that does not exist, or is empty.
        key: Called with each excerpt; returns the name of its queue, or None to leave it out.
            Characters other than letters, digits and ``_.-~`` are percent-encoded in the directory.
            A longer result than 200 characters is cut, and ends in a digest of the name.
        progress: Called now and then.
        skipped: Called with each range of messages that cannot be read and is skipped: its
            ``first`` index, the index ``past`` it (None: nothing after it can be read), and the
            ``error``. None: the first is an error.

    Returns:
        How many messages each queue has, by its name.

    Raises:
        CorruptError: Messages cannot be read, and *skipped* is None.
        FileExistsError: *dest* is not empty.
        UnsupportedError: There are more than 256 names.
        ValueError: *dest* overlaps the source, or is a mount point.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD"})
        >>> _ = appender.write_map({"symbol": "USDJPY"})
        >>> quire.maintenance.split_queue(queue.path, "split", lambda it: it.to_dict()["symbol"])
        {'EURUSD': 1, 'USDJPY': 1}
        >>> with quire.open("split/USDJPY") as part, part.tailer() as tailer:
        ...     tailer.read_map()
        {'symbol': 'USDJPY'}

    """
    given = arguments.path("source", source)
    path = result_path("dest", dest)
    arguments.function("a function of an excerpt")("key", key)
    results: dict[str, Result] = {}
    with (
        open_whole(given) as queue,
        working_folder(path, [Path(queue.path)], "splitting") as folder,
        ExitStack() as opened,
    ):
        empty(folder)
        warn_left_out(queue.path, "split")
        times, total = CycleTimes(queue), queue.entry_count
        tailer: Any = opened.enter_context(closing(tailer_of(queue)))
        for number, excerpt in enumerate(messages_of(queue, tailer, skipped)):
            if progress is not None and number % _BETWEEN_REPORTS == 0:
                progress("splitting", number, max(number, total))
            name = key(excerpt)
            if name is None:
                continue
            if name not in results:
                part = folder.path / _directory(name, len(results))
                results[name] = opened.enter_context(Result(part, queue))
            results[name].append(excerpt.data, times.of(excerpt.index))
    return {name: result.messages for name, result in results.items()}


def _directory(name: object, count: int) -> str:
    """
    Return the directory of a name.

    Raises:
        UnsupportedError: There are too many names.

    """
    text = arguments.text("key", name)
    if count >= _MOST:
        raise UnsupportedError(f"too many queues to split into: most={_MOST} name={text!r:.80}")
    found = quote(text, safe="", errors="surrogatepass")
    if found.startswith(".") or not found:
        found = f"%2E{found[1:]}" if found else "%"
    if len(found) > _LONGEST_NAME:
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        found = f"{found[: _LONGEST_NAME - _DIGEST - 1]}%{digest}"
    return found
