"""The manifest of an archive: its topics, their cycles, and where their files are."""

from __future__ import annotations

import json
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from quire._common.durable import Access, SafeFolder
from quire.archive.cycle_entry import METADATA_KEY, Entry
from quire.archive.decoding import Decoding
from quire.errors import ArchiveError, LockHeldError, UnsafePathError

LISTS: Final = "_quire"
_LOCK: Final = "lock"
_FOLDER: Final = "topic="
_FORMAT: Final = 1
_SUFFIX: Final = ".parquet"
_LIST: Final = ".json"


@dataclass(slots=True)
class Topic:
    """
    The cycles of a queue in an archive.

    Attributes:
        name: The name of the topic.
        folder: The folder of its Parquet files.
        queue: The queue's directory.
        root: The path that was archived: the queue's directory, or a directory above it.
        facts: Facts that identify the queue, such as its roll cycle and epoch.
        entries: The archived cycles, by number.
        seen: Cycles that the last run saw and did not archive, because unfinished or damaged.
        lost: Cycles that are, or may be, lost: the cycle, or None if unknown, and the reason.
        decodings: The typed columns of all runs; the last element is that of the newest run.
        gone: Whether the queue is gone and its losses were accepted.
        problems: Problems with files in the folder.
        rewriting: The new entry of a cycle whose file is being replaced by one with today's
            layout. It is listed before the file is replaced; the file shows which entry applies.

    """

    name: str
    folder: Path
    queue: str = ""
    root: str = ""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: dict[int, Entry] = field(default_factory=dict[int, Entry])
    seen: set[int] = field(default_factory=set[int])
    lost: list[tuple[int | None, str]] = field(default_factory=list[tuple[int | None, str]])
    decodings: list[Decoding] = field(default_factory=list[Decoding])
    gone: bool = False
    problems: list[str] = field(default_factory=list[str])
    rewriting: dict[int, Entry] = field(default_factory=dict[int, Entry])

    def use(self, decoding: Decoding) -> int:
        """Make a decoding that of the newest run; return its position in the list, the last."""
        if self.decodings[-1:] != [decoding]:
            self.decodings.append(decoding)
        return len(self.decodings) - 1

    @property
    def newest_known(self) -> int | None:
        """The newest cycle that a run has seen."""
        return max({*self.entries, *self.seen}, default=None)

    @property
    def still_lost(self) -> list[tuple[int | None, str]]:
        """The losses, without cycles that were archived since."""
        return [(cycle, why) for cycle, why in self.lost if cycle not in self.entries]

    def file(self, entry: Entry) -> Path:
        """
        Return where a cycle's file is.

        Raises:
            UnsafePathError: Something other than a regular file has the name.

        """
        file = self.folder / entry.file
        if not is_plain(file):
            raise UnsafePathError(f"not a regular file: path={file} (remove it)")
        return file


class Archive:
    """
    An archive: a directory with a folder for each topic and a Parquet file for each cycle.

    Args:
        path: The directory.

    Examples:
        >>> import quire.archive
        >>> _ = quire.archive.archive("orders", "archive")
        >>> from pathlib import Path
        >>> quire.archive.Archive(Path("archive")).exists
        True

    """

    def __init__(self, path: Path) -> None:
        """Keep the path, and read nothing yet."""
        self.path: Final = path.absolute()

    @property
    def exists(self) -> bool:
        """Whether there is an archive."""
        return (self.path / LISTS).is_dir()

    def topics(self) -> list[str]:
        """
        Return the archive's topics, in order.

        Raises:
            ArchiveError: There is no archive in the folder.

        """
        if not self.exists:
            raise ArchiveError(f"no archive here: path={self.path}")
        with SafeFolder.at(self.path) as root, root.sub(LISTS) as lists:
            names = [it for it in lists.names() if it.endswith(_LIST)]
        return sorted(unquote(it.removesuffix(_LIST)) for it in names)

    @contextmanager
    def held(self, access: Access) -> Generator[None]:
        """
        Lock the archive against other runs, at most until the process ends.

        Args:
            access: The permissions of new files and folders.

        Raises:
            ArchiveError: Another run is working on the archive.

        """
        with (
            SafeFolder.at(self.path, access) as root,
            root.made(LISTS, access) as lists,
            ExitStack() as stack,
        ):
            try:
                stack.enter_context(lists.locked(_LOCK))
            except LockHeldError as error:
                raise ArchiveError(
                    "another run is working on this archive:"
                    f" lock={lists.path / _LOCK} pid={error.holder}"
                ) from None
            lists.sweep()
            yield

    @contextmanager
    def made(self, topic: Topic, access: Access) -> Generator[SafeFolder]:
        """Open the folder of a topic; create it if necessary, with the given permissions."""
        with SafeFolder.at(self.path) as root, root.made(topic.folder.name, access) as folder:
            yield folder

    def topic(self, name: str) -> Topic:
        """
        Return a topic, with the cycles in its manifest and files published since.

        Raises:
            ArchiveError: The manifest is of another version or damaged, or the topic's name is not
                UTF-8.
            OSError: The manifest cannot be read.

        """
        topic = Topic(name, self.path / f"{_FOLDER}{_quoted(name)}")
        with SafeFolder.at(self.path) as root:
            with root.sub(LISTS) as lists, suppress(FileNotFoundError):
                _fill(topic, lists.path / _list_of(name), lists.read(_list_of(name)))
            _settle(topic)
            known = {entry.file for entry in topic.entries.values()}
            with suppress(FileNotFoundError), root.sub(topic.folder.name) as folder:
                for file in folder.names():
                    if file.endswith(_SUFFIX) and not file.startswith(".") and file not in known:
                        _take_in(topic, topic.folder / file)
        topic.lost = topic.still_lost
        return topic

    def keep(self, topic: Topic) -> None:
        """Write the manifest of a topic."""
        content = {
            "format": _FORMAT,
            "topic": topic.name,
            "queue": topic.queue,
            "root": topic.root,
            "facts": topic.facts,
            "decodings": [decoding.to_json() for decoding in topic.decodings],
            "seen": sorted(topic.seen),
            "lost": topic.still_lost,
            "gone": topic.gone,
            "cycles": [entry.to_json() for _, entry in sorted(topic.entries.items())],
        }
        if topic.rewriting:
            content["rewriting"] = [entry.to_json() for entry in topic.rewriting.values()]
        with SafeFolder.at(self.path) as root, root.sub(LISTS) as lists:
            lists.replace(_list_of(topic.name), json.dumps(content, indent=1).encode())


def is_plain(file: Path) -> bool:
    """Whether a path is a regular file, or does not exist yet."""
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except FileNotFoundError:
        return True


def _list_of(topic: str) -> str:
    return f"{_quoted(topic)}{_LIST}"


def _quoted(topic: str) -> str:
    try:
        return quote(topic, safe="")
    except UnicodeEncodeError:
        raise ArchiveError(
            f"cannot archive a queue whose name is not UTF-8: name={topic!r} (rename it)"
        ) from None


def file_name(cycle: str) -> str:
    """Return the name of a cycle's Parquet file, given the name of its file in the queue."""
    return f"{cycle}{_SUFFIX}"


def read_entry(file: Path) -> Entry | None:
    """
    Return the entry in a Parquet file's metadata; None if it is not of an archive.

    Raises:
        ArchiveError: The entry in the file's metadata is damaged.

    """
    try:
        metadata = pq.read_metadata(file).metadata or {}
    except (pa.ArrowInvalid, OSError) as error:
        raise ArchiveError(f"not a Parquet file, or a damaged one: file={file} ({error})") from None
    if METADATA_KEY not in metadata:
        return None
    try:
        return Entry.of(json.loads(metadata[METADATA_KEY]))
    except (ValueError, TypeError) as error:
        raise ArchiveError(f"the file's metadata is damaged: file={file} ({error})") from None


def _take_in(topic: Topic, file: Path) -> None:
    """Add a file that the manifest does not list, or record a problem with it."""
    if not is_plain(file):
        topic.problems.append(f"not a regular file: path={file} (remove it)")
        return
    try:
        entry = read_entry(file)
    except ArchiveError as error:
        topic.problems.append(str(error))
        return
    if entry is None:
        return
    if entry.file != file.name or entry.cycle in topic.entries:
        topic.problems.append(
            f"a copy of an archived file, which readers count twice: file={file} of={entry.file}"
        )
        return
    topic.entries[entry.cycle] = entry
    if entry.previous is not None:
        topic.seen.add(entry.previous)


def _settle(topic: Topic) -> None:
    """Adopt the entries of files that a killed run replaced but did not list any more."""
    for cycle, entry in topic.rewriting.items():
        old = topic.entries.get(cycle)
        if old is None or old.recorded != entry.recorded:
            continue
        with suppress(ArchiveError, UnsafePathError):  # reported when the file is read
            found = read_entry(topic.file(old))
            if found is not None and found.layout == entry.layout:
                topic.entries[cycle] = entry
    topic.rewriting.clear()


def _check_texts(*found: object) -> None:
    if not all(isinstance(it, str) for it in found):
        raise TypeError(f"not the paths of a queue: {found!r}")


def _fill(topic: Topic, listed: Path, content: bytes) -> None:
    try:
        known = json.loads(content)
        if known["format"] != _FORMAT:
            raise ArchiveError(
                f"the archive has another version: file={listed} found={known['format']}"
                f" expected={_FORMAT}"
            )
        topic.queue, topic.root, topic.facts = known["queue"], known["root"], known["facts"]
        _check_texts(topic.queue, topic.root)
        topic.decodings = [Decoding.of(each) for each in known["decodings"]]
        topic.seen = set(known["seen"])
        topic.gone = known.get("gone", False)
        topic.lost = [(cycle, reason) for cycle, reason in known["lost"]]
        topic.entries = {each["cycle"]: Entry.of(each) for each in known["cycles"]}
        begun = [Entry.of(each) for each in known.get("rewriting", [])]
        topic.rewriting = {each.cycle: each for each in begun}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArchiveError(f"damaged manifest: file={listed} ({error})") from None
