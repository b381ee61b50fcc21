from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from os import PathLike
from types import TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, final, overload

from typing_extensions import Buffer as BufferLike
from typing_extensions import disjoint_base

__all__ = [
    "BUILD_PROFILE",
    "FINDING_KINDS",
    "VERSION",
    "Appender",
    "AwaitedDocument",
    "BatchReader",
    "BatchWriter",
    "Buffer",
    "Call",
    "Chain",
    "Cipher",
    "Claim",
    "ClaimKey",
    "Codec",
    "Dump",
    "Encoder",
    "EventLoopWaits",
    "Excerpt",
    "ExcerptWriter",
    "FileEvents",
    "Group",
    "GroupMember",
    "IndexedQueue",
    "IndexedTailer",
    "Kind",
    "ManualClock",
    "MessageHistory",
    "MessagePacker",
    "MessageUnpacker",
    "Method",
    "MethodReader",
    "MethodWriter",
    "Plan",
    "Pretoucher",
    "Queue",
    "QuickAppender",
    "QuickExcerpt",
    "QuickQueue",
    "QuickTailer",
    "RawIn",
    "RawOut",
    "ReadDocument",
    "ReplicaStates",
    "RequestReader",
    "Ring",
    "RollCycle",
    "Seen",
    "StreamCompressor",
    "StreamDecompressor",
    "Tailer",
    "VanillaAppender",
    "VanillaExcerpt",
    "VanillaQueue",
    "VanillaTailer",
    "Wait",
    "WireIn",
    "WireOut",
    "WriteDocument",
    "_parse_shown",
    "boot_id",
    "boot_time_ns",
    "compress_roll_file",
    "count_pruned",
    "cycle_digest",
    "document_to_send",
    "encrypted_dictionary",
    "entry_bytes",
    "entry_ids",
    "field_json",
    "first_entries",
    "group_backlog",
    "group_delivered",
    "group_extend",
    "group_forget",
    "group_is_kept",
    "group_keep",
    "group_members",
    "group_release",
    "group_snapshot",
    "group_tails",
    "group_take",
    "hash_cycle",
    "is_compressed_copy",
    "is_encrypted",
    "keep_tailer",
    "kind_parts",
    "map_bytes",
    "message_bytes",
    "network_file_system",
    "parse_json",
    "parse_yaml",
    "received_document",
    "render_columns",
    "render_rows",
    "repair_journal",
    "reported_losses",
    "rewrap_key",
    "ring_intended",
    "ring_stats",
    "split_payloads",
    "tail_hash",
    "text_bytes",
    "times_file",
    "to_json",
    "to_yaml",
    "train_dictionary",
    "verify_journal",
    "whole_cycle_digest",
    "wrap_new_key",
]

_T = TypeVar("_T")
_E_co = TypeVar("_E_co", covariant=True)

FINDING_KINDS: Final[list[str]]
VERSION: Final[str]
BUILD_PROFILE: Final[str]

# Whatever has an encoding: scalars of numpy and objects of registered classes too.
Value: TypeAlias = Any
Direction: TypeAlias = Literal["forward", "backward", "none"]
_Columns: TypeAlias = tuple[BufferLike | None, BufferLike, BufferLike]

# A queue's name, and messages for it: how many, the length of the longest, offsets and bytes.
PackedEntries: TypeAlias = tuple[bytes, int, int, bytes, bytes]

# Name, kind, position of the first row, buffers, the columns inside.
RenderedColumn: TypeAlias = tuple[str, str, int, list[Any], list[RenderedColumn]]

# Columns: a field is its name, whether it may be null, its type, two numbers, and what is inside.
PlanField: TypeAlias = tuple[str, bool, str, tuple[int, int], Sequence[PlanField]]
PlanMethod: TypeAlias = tuple[str, int | None, str, Sequence[PlanField]]
# Length, nulls, buffers, the columns inside, the values of a dictionary.
Column: TypeAlias = tuple[int, int, list[Buffer | None], list[Column], Column | None]
# Rows, indexes, columns, history, errors.
Table: TypeAlias = tuple[int, Buffer, list[Column], Column | None, Column | None]
# A message's index; how often it was delivered; the name and pid of the living member that has it;
# when it was last delivered, in epoch milliseconds; for how many milliseconds more that member has
# it; in how many milliseconds it may be delivered again; why it is to be delivered again.
_Delivered: TypeAlias = tuple[
    int, int, tuple[str, int] | None, int | None, int | None, int, str | None
]
# Sorts of values, what is under each name, what is in lists.
Sample: TypeAlias = tuple[list[str], list[tuple[str, Sample]], Sample | None]

# What classes have in common, here alone: at run time each has it itself.

class _Context:
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class _Handle(_Context):
    @property
    def path(self) -> str:
        """The path of the queue."""

    @property
    def closed(self) -> bool:
        """Whether the handle or its queue was closed."""

    def close(self) -> None:
        """Close the handle. Idempotent."""

class _Queue(_Handle):
    @property
    def read_only(self) -> bool:
        """Whether the queue was opened with ``read_only=True``."""

    @property
    def first_index(self) -> int | None:
        """The index of the first message; None if there is none."""

    @property
    def last_index(self) -> int | None:
        """The index of the last message; None if there is none."""

    def close(self) -> None:
        """Close the queue and all its appenders and tailers. Idempotent."""

class _Tailer(_Handle, Generic[_E_co]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> _E_co: ...
    def read(self) -> _E_co | None:
        """Return the next message with its index; None if there is none yet."""

    def read_bytes(self) -> bytes | None:
        """Return the bytes of the next message; None if there is none yet."""

    def read_many(self, count: int, /) -> list[bytes]:
        """Return up to *count* payloads; an empty list if there is no message yet."""

    def payloads(self) -> Iterator[bytes]:
        """
        Return an iterator over payloads without their indexes: the fastest loop.

        It stops when there are no more messages yet, and continues when you iterate again.

        Examples:
            >>> _ = appender.write_many([b"one", b"two"])
            >>> list(tailer.payloads())
            [b'one', b'two']

        """

    def spin(self, timeout_s: float | None = None) -> bool:
        """
        Busy-wait for a message; return True once there is one to read, False after the timeout.

        For a thread with a core of its own: one check takes a few nanoseconds, while a call of
        :meth:`read_bytes` that returns None takes tens. Other threads run meanwhile. If Python has
        started no other thread, the first 50 microseconds keep the interpreter, which is fastest.
        The message is not read yet; messages received before count as finished. To wait without
        using a core, see :meth:`quire.Tailer.wait`.

        Args:
            timeout_s: The longest time to wait, in seconds; None: no limit.

        Raises:
            ValueError: The timeout is negative or not a number.

        """

    def to_start(self) -> None:
        """Move to the first message."""

    def to_end(self) -> None:
        """Move past the last message or, when reading backward, to it."""

    def _prepare(self) -> bool | None:
        """
        Look for the next message, as far as one pass goes without pausing or waiting.

        Returns:
            Whether there is a message; None if the scan is not complete.

        """

    def _sleep(self, timeout_s: float | None = None) -> bool:
        """Sleep until there is something to read, or an error; False after the timeout."""

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Wait:
        """Begin a wait of a task: its number is among those due once there is something to read."""

    def _read_columns(
        self, count: int, /, *, max_bytes: int | None = None, end: int = ...
    ) -> tuple[int, Buffer, Buffer, Buffer]:
        """
        Return up to *count* messages as Arrow buffers.

        Args:
            count: The largest number of messages.
            max_bytes: The largest total size, unless a single message exceeds it.
            end: Only messages before this index.

        Returns:
            The count, the indexes (uint64), the offsets (int32, one more), the payload bytes.

        """

class _ChronicleTailer(_Tailer[_E_co]):
    def read_text(self) -> str | None:
        """
        Return the next message as text; None if there is none yet.

        Raises:
            WireError: The message is not a text value; the position stays.

        """

    @property
    def direction(self) -> Direction:
        """
        The direction of reads: ``forward``, ``backward`` or ``none``. Can be set.

        Examples:
            >>> _ = appender.write_many([b"one", b"two", b"three"])
            >>> tailer.direction = "backward"
            >>> tailer.to_end()
            >>> tailer.read_many(10)
            [b'three', b'two', b'one']

        """

    @direction.setter
    def direction(self, value: Direction, /) -> None: ...
    @property
    def last_read_index(self) -> int | None:
        """The index of the message this tailer read last; None before the first."""

@final
class Plan:
    """A plan for decoding messages into columns, built by :class:`quire.Schema`."""

    def __new__(
        cls,
        shape: Literal["fields", "value", "calls"],
        parts: Sequence[PlanField | PlanMethod],
        *,
        history: bool = False,
        types: Sequence[str] = ...,
    ) -> Plan: ...
    def decode(
        self,
        indexes: BufferLike,
        offsets: BufferLike,
        data: BufferLike,
        *,
        keep_misfits: bool = False,
        layout: str = "tables",
        payload: bool = False,
        topic: str | None = None,
    ) -> tuple[int, list[Table], Column | None, Column | None]:
        """Decode payloads; see :meth:`Tailer._read_decoded` and :meth:`Tailer._read_columns`."""

# Length, the first value's place, whether it has a zone, buffers, the columns inside, the values of
# a dictionary.
Borrowed: TypeAlias = tuple[
    int, int, bool, Sequence[BufferLike | None], Sequence[Borrowed], Borrowed | None
]

@final
class Encoder:
    """Encodes rows as messages; see ``quire.arrow.encoder``."""

    def __new__(
        cls,
        content: Literal["value", "entries", "fields", "typed", "call", "calls"],
        parts: Sequence[PlanField | PlanMethod],
        *,
        type_name: str = ...,
        omit_nulls: bool = False,
        fieldless: bool = False,
    ) -> Encoder: ...
    def encode(self, count: int, columns: Sequence[Borrowed], /) -> tuple[Buffer, Buffer]:
        """Return the offsets of the messages, 64 bits wide, and their bytes."""

@final
class Seen:
    """Collects the types of a sample of messages; see :meth:`quire.Schema.infer`."""

    def __new__(cls) -> Seen: ...
    def look(self, tailer: Tailer, count: int, /) -> int:
        """Look at up to *count* more messages; return how many there were."""

    def look_at(self, payload: bytes, /) -> None:
        """Look at one more message."""

    def found(self) -> Sample: ...

def kind_parts(kind: Kind, /) -> tuple[str, list[Kind], Codec | None]:
    """Return the name of a declared type, the types inside it, and the codec of a class."""

def whole_cycle_digest(queue: Queue, cycle: int, /) -> tuple[tuple[int, int, bool], bytes] | None:
    """
    Return where the documents of a cycle end, and their digest; None if there is no such cycle.

    Raises:
        CorruptError: The file is damaged.

    """

def cycle_digest(queue: Queue, place: tuple[int, int, bool], /) -> bytes | None:
    """
    Return the BLAKE3 hash of a cycle's documents up to a place; None if there is no such place.

    Two queues with the same digest hold the same messages and metadata there.
    """

@final
class RequestReader:
    """Parses what a client of Redis sends, in the pieces in which it arrives."""

    def __new__(cls) -> RequestReader: ...
    @property
    def pending(self) -> int:
        """How many bytes of an incomplete request there are."""

    def feed(
        self, data: bytes, size: int, words: int, /
    ) -> tuple[list[list[bytes] | PackedEntries], str | None]:
        """
        Take bytes; return the requests that they complete, and what is wrong with the rest.

        Plain ``XADD`` commands for one queue that follow one another are returned as their
        messages. After an error the reader is of no more use.

        Args:
            data: The bytes.
            size: How many bytes a request has at most.
            words: How many words a request has at most, with the command's name.

        """

@final
class Cipher:
    """What encrypts and decrypts the messages of a queue; it shows no key."""

    def __new__(
        cls,
        queue: bytes,
        records: list[tuple[int, bytes, list[bytes]]],
        *,
        added: tuple[PathLike[str], list[bytes]] | None = None,
        current: int | None = None,
        expires_ms: int | None = None,
        allow_plain: bool = False,
    ) -> Cipher:
        """
        Unwrap data keys.

        Args:
            queue: The random id of the queue, 16 bytes.
            records: The number of each data key, how it is wrapped, and the keys to try.
            added: The file in which data keys come to be later, and the keys to try; None: there
                will be none.
            current: The number of the data key to encrypt with; None: nothing is written.
            expires_ms: When that key begins no cycle any more, in epoch milliseconds.
            allow_plain: Messages that are not encrypted are read as they are.

        """

    @property
    def numbers(self) -> list[int]:
        """The numbers of the data keys that one of the keys unwraps."""

    def seal_staged(self, number: int, plain: bytes, /) -> bytes:
        """Return bytes that wait beside the queue's messages, encrypted; *number* is not stored."""

    def open_staged(self, number: int, stored: bytes, /) -> bytes:
        """
        Return what :meth:`seal_staged` encrypted with this number.

        Raises:
            ForgedMessageError: *stored* was changed, or is of another number or queue.
            PlainMessageError: *stored* is not encrypted.

        """

def wrap_new_key(key: bytes, queue: bytes, number: int, /) -> bytes:
    """Return a new random data key of a queue, wrapped by a key of 32 bytes."""

def rewrap_key(
    old: bytes, new: bytes, queue: bytes, number: int, wrapped: bytes, /
) -> bytes | None:
    """Return a data key wrapped by another key; None if the old one does not unwrap it."""

@final
class StreamCompressor:
    """Compresses the parts of a stream by zstd, each with all before it in view."""

    def __new__(cls) -> StreamCompressor: ...
    def compress(self, part: bytes, /) -> bytes:
        """Return the next part, compressed: it can be read once it is there."""

@final
class StreamDecompressor:
    """Decompresses what :class:`StreamCompressor` made, in its order."""

    def __new__(cls) -> StreamDecompressor: ...
    def decompress(self, stored: bytes, length: int, /) -> bytes:
        """
        Return the next part.

        Raises:
            ValueError: The part is damaged, or has another number of bytes than *length*.

        """

def encrypted_dictionary(content: bytes, cipher: Cipher, /) -> tuple[int, bytes]:
    """Return the number of a dictionary, and what its file holds beside an encrypted queue."""

def train_dictionary(
    samples: Sequence[bytes], /, *, longest: int, cipher: Cipher | None = None
) -> tuple[int, bytes]:
    """
    Train a dictionary of zstd for messages like the samples.

    Args:
        samples: Messages.
        longest: The most bytes it may have.
        cipher: What encrypts it; None: nothing.

    Returns:
        The number that names it, and what its file holds.

    Raises:
        ValueError: The samples are too few, or have too little in common.

    """

def is_encrypted(stored: bytes, /) -> bool:
    """Return whether a stored message has the marker of an encrypted one."""

def hash_cycle(
    queue: Queue,
    cycle: int,
    /,
    *,
    count: int,
    peaks: list[bytes],
    marks: list[int],
    until: int,
    proving: int | None = None,
) -> (
    tuple[
        int,
        list[bytes],
        bytes,
        bytes,
        list[bytes],
        bool,
        bytes | None,
        str | None,
        tuple[bytes, bytes | None, list[bytes]] | None,
        tuple[int, tuple[int, bool] | None, bool, str | None],
    ]
    | None
):
    """
    Hash messages of a cycle into a tree; None if there is no file, or it is being made.

    Args:
        queue: The queue.
        cycle: The cycle.
        count: How many messages are in the tree already; none where one is proven.
        peaks: The roots of its perfect subtrees.
        marks: After how many messages the root is wanted, ascending.
        until: The number of messages to stop at.
        proving: The number of a message to prove.

    Returns:
        How many messages are in the tree, its peaks and root, the first 8 bytes of each new leaf,
        the roots at those marks that were reached, whether the end-of-file marker was, the hash of
        metadata after the last message, why the walk ended at damage, and of the message that is
        proven its bytes, the hash of the metadata before it and the siblings up to the root. Last,
        what the checksums say that appenders left: how many messages have one, the number of the
        first that is not what was appended and whether a page of it was never written, whether
        messages were appended after the last one that is there, and why the checksums are not used.

    """

def entry_bytes(name: str, value: object, /) -> bytes:
    """Return a named value, encoded as by :meth:`WriteDocument.write`."""

def entry_ids(first: int, count: int, /) -> bytes:
    """Return the ids of *count* entries, as answers of a server: the first is of index *first*."""

def map_bytes(values: Mapping[str, object], /) -> bytes:
    """
    Return the named values that :meth:`Appender.write_map` appends.

    Raises:
        TypeError: *values* is no mapping.

    """

def text_bytes(text: str, /) -> bytes:
    """Return the message that :meth:`Appender.write_text` appends."""

def message_bytes(
    message: object, cls: type | None = None, /, *, typed: bool = False, fieldless: bool = False
) -> bytes:
    """
    Return the message that :meth:`Appender.write_message` appends.

    Args:
        message: The object.
        cls: Its class, for a dictionary.
        typed: Begin with the alias of its class.
        fieldless: Leave out the names of fields, as ``FIELDLESS_BINARY`` has it.

    """

def document_to_send(
    appender: object, *, metadata: bool = False, wait: object = None
) -> WriteDocument:
    """Return a document that an :class:`quire.formats.remote.AnyRemoteAppender` sends later."""

def received_document(tailer: object, /, *, include_metadata: bool) -> ReadDocument:
    """Return the next document of a :class:`quire.formats.remote.AnyRemoteTailer`."""

def render_columns(style: str, columns: list[RenderedColumn], rows: int, /) -> tuple[bytes, bool]:
    """
    Return rows of Arrow columns as the command line prints them.

    Args:
        style: ``csv``, ``jsonl`` or ``text``, which has tabs between the cells.
        columns: Their names; their kinds as the decoder calls them, as ``timestamp[ns, UTC]`` with
            this zone, or ``index``, or ``json`` for values that are JSON already; the position of
            their first row; their buffers as in Arrow; and the columns inside.
        rows: How many rows.

    Returns:
        The lines, and whether they have no other characters than those that every terminal shows.

    Raises:
        WireError: A buffer ends before its rows.

    """

def render_rows(style: str, columns: _Columns, start: int, stop: int, /) -> tuple[bytes, int, bool]:
    """
    Return rows of a batch as the command line prints them.

    Args:
        style: ``yaml``, ``java``, ``jsonl``, ``text`` or ``hex``.
        columns: Indexes, or None to leave them out; offsets of the payloads, and their bytes, as
            from ``_read_columns``.
        start: The first row.
        stop: The row after the last.

    Returns:
        The text; the row it ends before, which is one that this style cannot show, or *stop*; and
        whether the text has no other characters than those that every terminal shows.

    """

# Section, position, length, depth, first bytes, code, meaning, file.
_Section: TypeAlias = Literal["header", "payload", "next", "index"]
_Part: TypeAlias = tuple[_Section, int, int, int, bytes, str, str, str]
_Finding: TypeAlias = tuple[str, str, int | None, str, str]
_Done: TypeAlias = tuple[str, str, int | None, str]
_Report: TypeAlias = tuple[list[_Finding], int, int, int]
# Messages, last index; files: name, bytes to copy, length; patches: name, position, bytes.
_Snapshot: TypeAlias = tuple[
    int, int | None, list[tuple[str, int, int]], list[tuple[str, int, bytes]]
]

def verify_journal(path: str, /) -> _Report:
    """
    Check a queue's directory or one roll file; nothing is changed.

    Returns:
        Findings (kind, file, position, found, expected); files, messages and bytes examined.

    """

def compress_roll_file(source: str, target: str, pause: Callable[[], object], /) -> None:
    """Compress a finished roll file into an empty file, and fsync that; *pause* is called often."""

def times_file(cycle: int, points: Sequence[tuple[int, int]], /) -> bytes:
    """Return a file of append times; of each point the time, and how many messages there are."""

def is_compressed_copy(source: str, compressed: str, pause: Callable[[], object], /) -> bool:
    """Return whether a compressed file holds a roll file; *pause* is called often."""

def first_entries(path: str, most: int, /) -> list[tuple[str, bool]]:
    """Return names in a directory, and whether each is a directory, without reading all of it."""

def count_pruned(path: str | PathLike[str], cycles: int, freed: int, now_ms: int, /) -> None:
    """Count cycles that retention removed, and their bytes, if any process counts."""

def reported_losses() -> int:
    """Return how often readers of this process warned that messages were deleted unread."""

def ring_intended(path: str | PathLike[str], /) -> int | None:
    """
    Return the index where messages that are still in the ring were, or may have been, appended.

    The next drainer looks there whether they are in the queue already. None: nowhere.
    """

def ring_stats(path: str | PathLike[str], /) -> tuple[int, int, int, int, int] | None:
    """
    Return the state of the ring of a queue's directory; None if there is none.

    Returns:
        Capacity, bytes in use and their most, messages that wait, and stalls.

    """

def network_file_system(path: str, /) -> str | None:
    """Return the name of the network file system that a directory is on; None: it is local."""

def repair_journal(
    path: str, *, timeout_ms: int, allow_network: bool, is_replica: bool
) -> list[_Done]:
    """
    Repair a queue's directory; that of a replica stays closed to all appends but its sink's.

    Returns:
        What was done: kind, file, position, and the change in words.

    """

@final
class Buffer:
    """Bytes owned by the kernel, readable through the buffer protocol."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Group:
    """A group of consumers, whose side file is made when the first one joins."""

    def __new__(
        cls,
        directory: str | PathLike[str],
        name: str,
        *,
        keyed: bool = False,
        step: int = 1,
        file_mode: int = 0o600,
    ) -> Group: ...
    @property
    def name(self) -> str:
        """The group's name."""

    @property
    def _path(self) -> str:
        """The side file."""

    def _join(self, name: str, ack_timeout_ms: int, end: int, /) -> GroupMember:
        """Join the group, under a name for those who list its members; *end* is the queue's."""

    def _reset(self, start: int, end: int, /) -> None:
        """Have the group begin at an index, 0 for the first message; an error if it has members."""

    def _delete(self) -> bool:
        """Remove the side file; False if there is none, an error if the group has members."""

@final
class ClaimKey:
    """
    Identifies a claim and its owner.

    Slots and generations are reused; all three together are unique.
    """

    @property
    def slot(self) -> int:
        """The place of the claim in the side file."""

    @property
    def generation(self) -> int:
        """A number that changes with the owner."""

    @property
    def first(self) -> int:
        """The index of the first message."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Claim:
    """A range of at most 32 messages that a consumer works on; a bit stands for a message."""

    @property
    def refused(self) -> int:
        """The messages that are to be delivered again. Can be set."""

    @refused.setter
    def refused(self, refused: int, /) -> None: ...
    @property
    def available_ms(self) -> int:
        """When the refused ones may be delivered again, in epoch milliseconds. Can be set."""

    @available_ms.setter
    def available_ms(self, available_ms: int, /) -> None: ...
    @property
    def is_new(self) -> bool:
        """Whether its timeout has just begun. Can be set."""

    @is_new.setter
    def is_new(self, is_new: bool, /) -> None: ...
    @property
    def key(self) -> ClaimKey:
        """Which claim it is."""

    @property
    def first(self) -> int:
        """The index of the first message."""

    @property
    def pending(self) -> int:
        """The messages that are neither acknowledged nor lost."""

    @property
    def counted(self) -> int:
        """The messages whose delivery has been counted."""

    @property
    def singly(self) -> bool:
        """Whether its messages are delivered one at a time."""

    @property
    def hash(self) -> int:
        """The hash of the key of its only message."""

    @property
    def cause(self) -> str | None:
        """Why its messages are delivered again; None if they are not, or if it is unknown."""

    def count_of(self, message: int, /) -> int:
        """Return how often a message was delivered, at most 255."""

@final
class GroupMember:
    """A member of a group: it claims messages by their indexes, and acknowledges them."""

    @property
    def closed(self) -> bool:
        """Whether the member has left the group."""

    def frontier(self) -> tuple[int, int]:
        """Return a word to compare with, and the index of the first message nobody claimed."""

    def hold(self, at: tuple[int, int], indexes: BufferLike, /) -> list[Claim]:
        """Claim messages that follow a frontier; none of them if another member was faster."""

    def offer(self, at: tuple[int, int], indexes: BufferLike, keys: Sequence[int], /) -> int:
        """Claim messages that follow a frontier for any member; how many of them."""

    def take(self, count: int, /) -> list[Claim]:
        """Take claims that were offered, or whose owners died or were too slow."""

    def unconfirmed(self) -> list[Claim]:
        """Return the claims that were made since the last :meth:`confirm`."""

    def confirm(self, of: Sequence[Claim], /) -> None:
        """Say that these claims are known to the caller that made them."""

    def deliver(self, of: Sequence[tuple[Claim, int]], /) -> list[bool]:
        """Count messages of claims as delivered now, once; False for each claim that was lost."""

    def extend(self, of: Claim, timeout_ms: int, /) -> bool:
        """Give a claim at least this long from now before it times out; False if it was lost."""

    def move_to(self, at: tuple[int, int], to: int, /) -> int | None:
        """Have new claims begin at an index; how many were lost, None if another was faster."""

    def note_tail(self, index: int, message: BufferLike, later: int, /) -> None:
        """Note what the last message of a claim looked like, after which others were made."""

    def tails(self) -> list[tuple[int, int]]:
        """Return indexes of messages and hashes of what they looked like, the newest first."""

    @property
    def known(self) -> int:
        """Messages before this index may have been delivered before, which no count says."""

    def acknowledge(self, of: Sequence[tuple[Claim, int]], /) -> list[int]:
        """Acknowledge messages of claims by their bits; return those of each that were pending."""

    def give_back(self, of: Claim, /) -> bool:
        """Offer what is pending of a claim to all members; False if it was lost."""

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Wait:
        """Begin a wait of a task: its number is among those due once there is a claim to take."""

    def close(self) -> None:
        """Leave the group; what is pending is offered to all."""

def group_backlog(file: str | PathLike[str], /) -> tuple[int, int, int, int | None] | None:
    """
    Return the backlog of a group by its side file; None if the file does not exist.

    Returns:
        The index after the last claimed message, how many of those claimed are not acknowledged,
        the index of the first message that is not, and when the one that waits longest was
        delivered, in epoch milliseconds.

    """

def group_tails(file: str | PathLike[str], /) -> list[tuple[int, int]]:
    """Return indexes of claimed messages and hashes of what they looked like, the newest first."""

def group_delivered(file: str | PathLike[str], /) -> list[_Delivered]:
    """Return the messages of a group that were delivered and are not acknowledged, by index."""

def group_release(file: str | PathLike[str], index: int, delay_ms: int, /) -> tuple[int, str]:
    """
    Take a message and its range from their member, and offer them to all after a delay.

    Returns:
        How many messages these are, and why there are none.

    """

def group_extend(file: str | PathLike[str], index: int, timeout_ms: int, /) -> tuple[int, str]:
    """
    Give a message and its range at least this long from now before they time out.

    Returns:
        How many messages these are, and why there are none.

    """

def group_snapshot(file: str | PathLike[str], before: int, /) -> bytes | None:
    """
    Return the state of a group, of the messages before an index, as a source sends it.

    Returns:
        The bytes of ``docs/replication.md``; None if there is no such file, or it is damaged.

    """

def group_is_kept(file: str | PathLike[str], /) -> bool:
    """Return whether a sink keeps the group for its source: nobody joins it."""

def group_keep(
    directory: str | PathLike[str],
    name: str,
    state: BufferLike,
    /,
    *,
    kept: bool = True,
    known: int = 0,
    file_mode: int = 0o600,
) -> bool:
    """
    Make the side file of a group as its state says.

    Args:
        directory: The queue's.
        name: The group's.
        state: What :func:`group_snapshot` returns.
        kept: Whether nobody may join, since the group is that of the source.
        known: Messages before this index may have been delivered, which no count says.
        file_mode: The permissions of the file.

    Returns:
        False if members use the file, or another process replaced it meanwhile.

    Raises:
        ValueError: The name, or the state, is none.

    """

def group_forget(file: str | PathLike[str], /) -> bool:
    """Remove the side file of a group that a sink kept for its source; False if it kept none."""

def group_take(file: str | PathLike[str], /, *, file_mode: int = 0o600) -> bool:
    """
    Keep a group for the source that there will be, with all that its members acknowledged.

    They are put out: what they do from then on fails, and changes nothing.

    Args:
        file: The group's side file.
        file_mode: The permissions of the file that takes its place.

    Returns:
        False if there is no such file, or a damaged one.

    """

def group_members(file: str | PathLike[str], /) -> list[tuple[str, int, int]]:
    """Return the name and pid of each member that is alive, and how many messages it has."""

@final
class Dump:
    """
    The documents of one file, ``metadata.cq4t`` or ``*.cq4``, as pieces of UTF-8 text.

    Reads only the file itself; it need not lie in a queue.

    Args:
        path: The file.
        start: In a roll file, skip documents before the message with this sequence; 0: none.
        end: In a roll file, stop after the message before this sequence; None: at its end.

    Raises:
        NotAQueueError: The file has another name.
        CorruptError: The file does not start as its name requires. Later damage is reported in
            the text.

    """

    def __new__(cls, path: str | PathLike[str], start: int = 0, end: int | None = None) -> Dump: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

@final
class Excerpt:
    """
    One message: its index and its bytes. Equal by value, hashable and picklable.

    Args:
        index: The 64-bit message index.
        data: The payload.
        fieldless: Whether the payload was written without field names (``FIELDLESS_BINARY``).

    Examples:
        >>> index = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        >>> excerpt = tailer.read()
        >>> excerpt.index == index
        True
        >>> excerpt.to_dict()
        {'symbol': 'EURUSD', 'price': 1.1}
        >>> excerpt == quire.Excerpt(index, excerpt.data)
        True

    """

    def __new__(cls, index: int, data: bytes, fieldless: bool = False) -> Excerpt: ...
    def _repr_html_(self) -> str: ...
    @property
    def index(self) -> int:
        """The 64-bit message index."""

    @property
    def data(self) -> bytes:
        """The payload, as it is in the file."""

    def to_yaml(self) -> str:
        """Return the message as YAML; see :func:`quire.types.to_yaml`. Raw bytes are shown, too."""

    def to_json(self) -> str:
        """
        Return the message as one line of JSON; see :func:`quire.types.to_json`.

        Raw bytes are shown as text if they are text, or else as bytes.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> tailer.read().to_json()
            '{"symbol":"EURUSD","price":1.1}'

        """

    def to_text(self) -> str:
        """
        Return the text of the message, as :meth:`quire.JournalTailer.read_text`.

        Raw bytes are returned as text if they are text, or else as hexadecimal digits.

        Raises:
            WireError: The message is BinaryWire, but not a text value.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> _ = appender.write_many([b"raw text", bytes([0, 255])])
            >>> [message.to_text() for message in tailer]
            ['hello', 'raw text', '00 ff']

        """

    @overload
    def to_message(self, cls: type[_T], /) -> _T: ...
    @overload
    def to_message(self, cls: None = None, /) -> Any:
        """
        Return the message as an object, as :meth:`Tailer.read_message`.

        Args:
            cls: A class registered with :func:`quire.message`. None: the registered class that
                the message names.

        Raises:
            WireError: The message is not of this class.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Quote:
            ...     price: float
            >>> _ = appender.write_message(Quote(1.1))
            >>> tailer.read().to_message(Quote)
            Quote(price=1.1)

        """

    def to_dict(self) -> dict[Any, Any]:
        """
        Return the named values of the message.

        A value whose type is not registered becomes a :class:`quire.Typed`.

        Raises:
            WireError: The message is not a map, or not well-formed BinaryWire.

        """

    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Excerpt], tuple[int, bytes, bool]]: ...

@final
class Kind:
    """
    A declared type: how its values are written, and what they become when read.

    Built from annotations by ``quire.types.kind_of``.
    """

    @staticmethod
    def scalar(name: str) -> Kind:
        """
        Return a type without parts.

        Args:
            name: ``any``, ``bool``, ``int8`` to ``int64``, ``uint8`` to ``uint32``, ``float32``,
                ``float64``, ``str``, ``bytes``, ``decimal``, ``date``, ``time``, ``datetime``,
                ``timedelta`` or ``uuid``.

        """

    @staticmethod
    def enumeration(class_: type) -> Kind: ...
    @staticmethod
    def list(item: Kind) -> Kind: ...
    @staticmethod
    def tuple(item: Kind) -> Kind: ...
    @staticmethod
    def set(item: Kind) -> Kind: ...
    @staticmethod
    def frozenset(item: Kind) -> Kind: ...
    @staticmethod
    def dict(key: Kind, value: Kind) -> Kind: ...
    @staticmethod
    def message(codec: Codec) -> Kind: ...
    @staticmethod
    def optional(kind: Kind) -> Kind: ...
    @staticmethod
    def literal(kind: Kind, values: Sequence[Any]) -> Kind:
        """Return a type whose only values are those given."""

    @staticmethod
    def array(item: Kind, dtype: str | None) -> Kind:
        """Return a numpy array of a type; *dtype* is numpy's name of it, None for any."""

@final
class Codec:
    """
    How objects of one class are written and read, built by :func:`quire.message`.

    Args:
        cls_: The class.
        alias: Its name in messages.
        resolve: Returns the fields when they are first needed (name, attribute, kind, 0 for no
            default, 1 for a value, 2 for a factory or 3 where an object may be without it, and
            that default), and whether the class has a ``__post_init__``.
        build: ``set`` attributes, ``force`` them or the ``dict`` past the class's own
            ``__setattr__``, or ``call`` the class with keywords, or with ``args`` in order;
            ``items``: the objects are dictionaries.
        members: For an enum, its kind.
        keep_unknown: Keep fields that the class does not have.
        bytes_layout: Write fields one after the other, without names or types.

    """

    def __new__(
        cls,
        cls_: type,
        alias: str,
        resolve: Callable[[], tuple[list[tuple[str, str, Kind, int, Any]], bool]],
        *,
        build: str,
        members: Kind | None,
        keep_unknown: bool,
        bytes_layout: bool,
    ) -> Codec: ...
    @property
    def alias(self) -> str: ...
    @property
    def members(self) -> Kind | None:
        """The kind of an enum; None for other classes."""

    @property
    def bytes_layout(self) -> bool: ...
    @property
    def fields(self) -> list[tuple[str, str, Kind]]:
        """The name in messages, attribute and kind of each field, in order."""

    def register(self) -> type | None:
        """Register the class under its alias; if another class has the alias, return that class."""

    def check(self) -> None:
        """Resolve the fields now."""

@final
class RollCycle:
    """
    How a queue is split into files: cycle length, file-name pattern, index layout.

    Equal when all of these are.

    Args:
        name: One of Chronicle's names, such as ``FAST_DAILY``; case-insensitive. ``SECONDLY`` is
            another name of ``TEST_SECONDLY``.
        length_ms: Instead of a name: the length of a cycle, in milliseconds.
        pattern: With *length_ms*: the names of the files, in Java's date-format letters:
            ``yyyyMMdd``, ``yyyyDDD`` or ``YYYYww``, then ``HH``, ``HHmm`` or ``HHmmss``, and text
            in quotes between them. It has to name each cycle differently, and to be none of
            Chronicle's. It becomes the name.
        index_count: The number of slots in an index array, a power of two from 8; default 4,096.
        index_spacing: One message in this many has an entry in the index; a power of two, default
            256.

    Raises:
        ValueError: No roll cycle has this name, or the pattern, length or index layout is wrong.

    Examples:
        >>> cycle = quire.RollCycle("FAST_DAILY")
        >>> cycle.name, cycle.pattern, cycle.length_ms
        ('FAST_DAILY', "yyyyMMdd'F'", 86400000)
        >>> cycle.index_count, cycle.index_spacing, cycle.max_messages
        (4096, 256, 4294967295)
        >>> cycle.default_epoch_ms
        0
        >>> index = cycle.to_index(19737, 5)
        >>> hex(index), cycle.to_cycle(index), cycle.to_sequence(index)
        ('0x4d1900000005', 19737, 5)
        >>> three_hourly = quire.RollCycle(length_ms=3 * 3_600_000, pattern="yyyyMMdd-HH'III'")
        >>> three_hourly.file_name(three_hourly.cycle_at(1_705_314_600_000))
        '20240115-09III.cq4'
        >>> quire.RollCycle("SECONDLY").aliases
        ['SECONDLY']

    """

    def __new__(
        cls,
        name: str | None = None,
        *,
        length_ms: int | None = None,
        pattern: str | None = None,
        index_count: int | None = None,
        index_spacing: int | None = None,
    ) -> RollCycle: ...
    @staticmethod
    def all() -> list[RollCycle]:
        """Return every roll cycle, in the order of Chronicle's table."""

    @property
    def name(self) -> str:
        """The name, in upper case; for a roll cycle of your own, its pattern."""

    @property
    def aliases(self) -> list[str]:
        """Other names of the roll cycle that :func:`quire.open` accepts."""

    @property
    def pattern(self) -> str:
        """The file-name pattern, in Java's date-format letters."""

    @property
    def length_ms(self) -> int:
        """The length of a cycle, in milliseconds."""

    @property
    def index_count(self) -> int:
        """The number of slots in an index array."""

    @property
    def index_spacing(self) -> int:
        """One message in this many has an entry in the index."""

    @property
    def max_messages(self) -> int:
        """The number of messages that one cycle can hold."""

    @property
    def default_epoch_ms(self) -> int:
        """The start of cycle 0, in epoch milliseconds, unless a queue sets its own."""

    def to_index(self, cycle: int, sequence: int) -> int:
        """
        Compose a message index.

        Raises:
            IndexOutOfRangeError: The cycle is not in 0..2**31-1, or the sequence does not fit.

        """

    def to_cycle(self, index: int) -> int:
        """Return the cycle of a message index."""

    def to_sequence(self, index: int) -> int:
        """Return the sequence of a message index: its number within the cycle, from 0."""

    def cycle_at(self, time_ms: int, epoch_ms: int | None = None) -> int:
        """
        Return the cycle that contains a time.

        Args:
            time_ms: The time, in epoch milliseconds.
            epoch_ms: The start of cycle 0; None: :attr:`default_epoch_ms`.

        Examples:
            >>> quire.RollCycle("FAST_DAILY").cycle_at(1_705_314_600_000)
            19737

        """

    def file_name(self, cycle: int, epoch_ms: int | None = None) -> str:
        """
        Return the name of the cycle's file, including ``.cq4``.

        Examples:
            >>> quire.RollCycle("FAST_DAILY").file_name(19737)
            '20240115F.cq4'

        """

    def cycle_of_file(self, name: str, epoch_ms: int | None = None) -> int:
        """
        Return the cycle whose file has this name.

        Raises:
            ValueError: The name does not match the pattern.

        """

    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str, ...], dict[str, int | str]]: ...

@final
class ManualClock:
    """
    A clock that moves only when set, for tests, replays and recording by event time.

    Args:
        now_ms: The initial time, in epoch milliseconds.

    Examples:
        >>> clock = quire.ManualClock(1_705_314_600_000)
        >>> clock.advance(86_400_000)
        1705401000000
        >>> clock.now_ms = 1_705_314_600_000
        >>> clock()
        1705314600000
        >>> with quire.open("test", clock=clock) as queue:
        ...     queue.current_cycle
        19737

    """

    def __new__(cls, now_ms: int = 0) -> ManualClock: ...
    @property
    def now_ms(self) -> int:
        """The time, in epoch milliseconds. Can be set."""

    @now_ms.setter
    def now_ms(self, now_ms: int, /) -> None: ...
    def advance(self, ms: int) -> int:
        """Move by *ms* milliseconds, backward if negative, and return the new time."""

    def __call__(self) -> int:
        """Return the time in epoch milliseconds."""

    def __reduce__(self) -> tuple[type[ManualClock], tuple[int]]: ...

@final
class MessageHistory:
    """
    The path a message took from queue to queue. Equal by value, hashable and picklable.

    A method writer puts the history before its calls if its queue has a source id, or with
    ``record_history=True``. It grows from queue to queue: while a method reader runs a handler,
    every call that the handler's thread writes through such a writer carries the sources of the
    message being read, that message itself, the time it was read, and the time of writing.

    Args:
        sources: For each queue the message passed through, its source id and the index there; the
            most recent last.
        timings: Nanoseconds of the machine's monotonic clock, as Java's ``System.nanoTime``:
            written, read, written, and so on.

    Examples:
        >>> history = quire.MessageHistory(sources=[(1, 0x4d1900000005)], timings=[10, 25, 30])
        >>> history.sources[-1]
        (1, 84769769521157)
        >>> history.timings
        (10, 25, 30)

    """

    def __new__(
        cls, sources: Sequence[tuple[int, int]] = ..., timings: Sequence[int] = ...
    ) -> MessageHistory: ...
    @staticmethod
    def current() -> MessageHistory:
        """
        Return the history that a message written by this thread would carry.

        The time of writing is still missing. Inside a handler, the history ends with the message
        being read and the time it was read; outside a handler it is empty.
        """

    @property
    def sources(self) -> tuple[tuple[int, int], ...]:
        """The source id and index of the message in each queue it passed through."""

    @property
    def timings(self) -> tuple[int, ...]:
        """When the message was written and read in each queue, in monotonic nanoseconds."""

    def __hash__(self) -> int: ...
    def __reduce__(
        self,
    ) -> tuple[type[MessageHistory], tuple[tuple[tuple[int, int], ...], tuple[int, ...]]]: ...

@final
class Ring:
    """
    The ring of a queue with ``buffer_mode="async"``: appends that are not in the queue yet.

    All processes that append to the queue in this mode, or read through the ring, share it; so do
    the numbers here.

    Examples:
        >>> with quire.open("busy", buffer_mode="async") as queue, queue.appender() as appender:
        ...     index = appender.write_text("hello")
        ...     queue.ring.flush()
        ...     index, queue.ring.pending, queue.ring.used_bytes, queue.ring.stalls
        ...     queue.ring.high_water_bytes <= queue.ring.capacity_bytes, queue.entry_count
        (-1, 0, 0, 0)
        (True, 1)

    """

    @property
    def capacity_bytes(self) -> int:
        """
        The bytes of messages that the ring can hold, each message rounded up to a multiple of 8.

        While it grows, that is the sum of the rings that are not drained.
        """

    @property
    def used_bytes(self) -> int:
        """The bytes of messages in the ring now."""

    @property
    def high_water_bytes(self) -> int:
        """The most bytes that were in the ring at once since its creation."""

    @property
    def pending(self) -> int:
        """The number of messages in the ring now."""

    @property
    def stalls(self) -> int:
        """How often a message found no room, since the ring was created."""

    def flush(self, *, timeout_s: float | None = None, again: bool = False) -> None:
        """
        Wait until all messages that were in the ring at the time of the call are in the queue.

        Args:
            timeout_s: How long to wait; None: as long as an append waits for the write lock.
            again: If a dead drainer may have appended messages and the queue's copies cannot be
                read, append these messages again, with a warning, instead of raising.

        Raises:
            LockTimeoutError: The ring was not drained within *timeout_s* seconds, for example
                because the draining process is stopped.
            QuireError: A message that a dead drainer may have appended cannot be read in the queue,
                so it is unknown whether it is there.

        """

@final
class Pretoucher(_Context):
    """
    Prepares files ahead of a queue's appenders, from :meth:`quire.JournalQueue.pretoucher`.

    Each step creates the file of the current cycle if it does not exist, reserves space after the
    last message and touches it, and releases pages well before it. It changes no message and never
    waits: while the write lock is held, no file is created. It ends with its queue.

    Examples:
        >>> with queue.pretoucher() as pretoucher:
        ...     pretoucher.execute()
        >>> pretoucher.closed
        True

    """

    def __new__(
        cls,
        queue: Queue,
        *,
        early_acquire_next_cycle: bool,
        preroll_ms: int,
        dont_write: bool,
    ) -> Self: ...
    def execute(self) -> None:
        """
        Take one step, in the caller's thread.

        Raises:
            ClosedError: The pretoucher was closed or shut down.
            OSError: The disk is full.

        """

    def start(self, *, interval_s: float = 0.01) -> None:
        """
        Take a step every *interval_s* seconds in a thread of the kernel, which needs no GIL.

        Errors are logged; the thread continues and tries again. A second call changes nothing.

        Raises:
            ClosedError: The pretoucher was closed or shut down.
            UnsupportedError: The queue's clock calls Python.

        """

    def shutdown(self) -> None:
        """
        Stop further steps, without waiting for a running one; callable from any thread.

        :meth:`execute` raises :class:`quire.errors.ClosedError` from then on, which ends a loop
        around it.
        """

    @property
    def closed(self) -> bool:
        """Whether it was closed or shut down, or its queue closed."""

    def close(self) -> None:
        """End the pretoucher: its thread ends, its files are released; the queue stays open."""

@final
class ReplicaStates:
    """
    What the processes of a queue know of its replicas: the file ``replicas.quire``, mapped.

    Those that append look at the lease; the source's process alone stores what replicas have.
    """

    @staticmethod
    def open_or_create(directory: str | PathLike[str], /, *, mode: int = 0o600) -> ReplicaStates:
        """
        Open the file of a queue's directory, which is made if it is missing.

        Processes that have appended before notice a new file within two seconds. What was stored
        before the machine was started is void: no replica has acknowledged anything, and a lease is
        over.

        Raises:
            CorruptError: The file is damaged.

        """

    @staticmethod
    def of_queue(queue: Queue, /, *, mode: int = 0o600) -> ReplicaStates:
        """
        Open the file of an open queue, as :meth:`open_or_create` does.

        Raises:
            CorruptError: The file is damaged.
            TableLostError: The queue's directory was renamed, removed or replaced.

        """

    @staticmethod
    def open_existing(
        directory: str | PathLike[str], /, *, read_only: bool = False
    ) -> ReplicaStates | None:
        """
        Open the file of a queue's directory; None if there is none.

        Raises:
            CorruptError: The file is damaged.

        """

    @property
    def lease_end(self) -> int:
        """When the lease ends, by :func:`boot_time_ns`; 0 if none is needed."""

    def set_lease_end(self, end_ns: int, /) -> None:
        """
        Set when the lease ends, by :func:`boot_time_ns`: later, Quire's appends are refused.

        0 says that no lease is needed, 1 that it is over.
        """

    @property
    def epoch(self) -> int:
        """The number of the source's epoch."""

    def begin_epoch(self, epoch: int, /) -> None:
        """
        Begin an epoch, unless this is its number: what replicas acknowledged in others is void.

        Waits for messages of an earlier epoch end with an error. The caller holds the lock of
        :meth:`lock_source`.
        """

    def note_cut(self, last: int | None, /) -> None:
        """
        Note that the queue ends with this message, or is about to; None: before the first.

        Nothing after it counts as replicated any more, and waits for messages that were appended
        before the cut end with an error. The caller holds the lock of :meth:`lock_source`.
        """

    def lock_source(self) -> None:
        """
        Become the only one who stores what replicas have, until :meth:`unlock_source`.

        Raises:
            WriterInUseError: Another source of the queue lives.

        """

    def unlock_source(self) -> None:
        """End what :meth:`lock_source` began; nothing if it did not."""

    def slot_of(self, name: str, address: str, /) -> int:
        """
        Return the slot of a replica, which it gets now if it has none.

        Raises:
            ReplicationError: All slots belong to others.

        """

    def note_connection(self, slot: int, /, *, is_connected: bool, is_synced: bool) -> None:
        """Store whether a replica is connected, and what its acknowledgements mean."""

    def note(
        self, slot: int, /, *, sent: int | None, acknowledged: int | None, time_ns: int
    ) -> bool:
        """
        Store the last index that a replica was sent, and the last that it has acknowledged.

        Args:
            slot: The replica's.
            sent: None before the first.
            acknowledged: None before the first.
            time_ns: When what it has acknowledged was sent, since 1970.

        Returns:
            Whether anybody waited for what replicas acknowledge, and was woken.

        """

    def set_member(self, slot: int, is_member: bool, /) -> None:
        """Make a replica a member of the in-sync set, or take it out of it."""

    def forget(self, name: str, /) -> bool:
        """Take a replica out of the in-sync set; return whether it was in it."""

    def replicas(
        self,
    ) -> list[
        tuple[str, str, bool, bool, Literal["stored", "synced"], int | None, int | None, int]
    ]:
        """
        Return all replicas.

        Name, address, whether it is a member of the in-sync set, whether it is connected, level,
        acknowledged index, sent index, and when what it has acknowledged was sent.
        """

    def acknowledged(self, quorum: Literal["any", "all"] | int, /) -> int | None:
        """Return the index up to which n members have all messages; None if there is none."""

    def reached(self, quorum: Literal["any", "all"] | int, /) -> tuple[int | None, tuple[int, int]]:
        """
        Return what :meth:`acknowledged` does, and the history that it belongs to.

        That is the epoch, and how often messages were taken from the queue's end. As long as both
        stay the same, an index of the queue belongs to one message.
        """

    @property
    def elsewhere(self) -> int | None:
        """
        The index up to which another machine has all messages; None if that is not known.

        That is a member of the in-sync set, or the source that this queue was a replica of.
        """

    def note_elsewhere(self, index: int, /) -> None:
        """Store that the source has the messages of this replica up to an index."""

    @property
    def members(self) -> int:
        """How many replicas are in the in-sync set."""

    def wait(
        self, index: int, quorum: Literal["any", "all"] | int, /, *, timeout_s: float | None = None
    ) -> bool:
        """Wait until n members have acknowledged the message; False after the time given."""

def boot_id() -> int:
    """Return a number for this start of the machine, the same in every process; never 0."""

def boot_time_ns() -> int:
    """Return the time since the machine was started, with the time it was suspended."""

@final
class BatchReader:
    """
    Reads batches of documents for a replica: messages and metadata as they lie in the files.

    Args:
        tailer: What it reads with; nothing else may read with it.
        end: Where the replica ends, as :attr:`BatchWriter.end` says; None if it is empty.

    Raises:
        ReplicationError: The replica ends where this queue has no message.

    """

    def __new__(cls, tailer: Tailer, end: tuple[int, int, bool] | None, /) -> BatchReader: ...
    def read(self, most_bytes: int, /, *, until: int | None = None) -> bytes | None:
        """
        Return the next batch, of about this many bytes at most; None if there is nothing yet.

        The documents of a batch are of one cycle. An empty one says that the cycle has ended.

        Args:
            most_bytes: About how many bytes.
            until: The index of the first message that is not to be read, if there is one.

        Raises:
            DataLossError: Messages that the replica lacks were deleted.

        """

    @property
    def end(self) -> tuple[int, int, bool]:
        """Where the replica ends with what was read."""

def keep_tailer(queue: Queue, name: str, index: int, version: int, /) -> bool:
    """
    Store the position of a ``replicated:`` tailer as its source has it, unless it is newer here.

    The caller keeps the append lock, so that no such tailer is opened meanwhile.

    Returns:
        Whether it was stored.

    Raises:
        ValueError: The name, or the index, is none of such a tailer.

    """

@final
class BatchWriter(_Context):
    """
    Applies batches to a replica, and keeps all other writers from appending to it.

    Raises:
        AppendLockedError: Another sink keeps this replica.
        ReadOnlyError: The queue was opened read-only.
        UnsupportedError: The queue was opened with ``buffer_mode="async"``.

    """

    def __new__(cls, queue: Queue, /) -> BatchWriter: ...
    @property
    def end(self) -> tuple[int, int, bool] | None:
        """
        Where the replica ends; None if it is empty.

        The index of its next message if that is in the same cycle, how many metadata documents
        follow the last message, and whether the last cycle has ended.
        """

    def settle(self) -> None:
        """Wait until appends that were in progress when this was made have ended."""

    def apply(self, batch: bytes, /, *, time_ms: int | None = None) -> tuple[int, int, bool]:
        """
        Append the documents of a batch that the replica lacks; return where it ends with them.

        Args:
            batch: The bytes that :meth:`BatchReader.read` returned.
            time_ms: When its messages were appended, in milliseconds since 1970, for the index by
                time; None: now.

        Raises:
            ReplicationError: The bytes are no batch, or it leaves a gap.
            AppendLockedError: The replica was promoted, or another sink took it over.

        """

    def forget_from(self, index: int, /) -> None:
        """
        Have the table name nothing from a message on, which was taken out with all that followed.

        Named tailers past it go back to it, and the directory is listed again.
        """

    def sync(self) -> None:
        """Return when what was applied is on the medium."""

    def promote(self) -> None:
        """
        Open the replica for appends, and close the writer: it is a queue of its own.

        Raises:
            AppendLockedError: The replica was promoted, or another sink took it over.

        """

    def close(self) -> None:
        """Close the writer. Appends are refused until there is a new one, or a promotion."""

@final
class FileEvents:
    """The roll files that a queue opens and releases, for a listener in a thread of its own."""

    def take(self) -> list[tuple[int, str, bool]] | None:
        """
        Wait for events: the cycle, its file, and whether it was opened.

        A file that several handles use is opened and released once. None after the queue was closed
        and its files are released.
        """

    def end(self) -> None:
        """Count the open files as released; there are no events after that."""

@final
class EventLoopWaits:
    """The waits of an event loop's tasks, which the loop hears of by a file descriptor."""

    def fileno(self) -> int:
        """Return the descriptor that is readable when a wait is due."""

    @property
    def is_prompt(self) -> bool:
        """
        Whether waits that begin are announced the very next message, however many come.

        Each such wake-up is the appender's work; so others are announced one only when the last
        has been for a while.
        """

    @is_prompt.setter
    def is_prompt(self, is_prompt: bool, /) -> None: ...
    def wake(self, number: int, /) -> None:
        """Make the wait with a number due; from any thread."""

    def take_due(self) -> list[int]:
        """Return the numbers of the waits that have become due since the last call."""

@final
class Wait:
    """A wait of a task, from :meth:`Tailer._begin_wait`."""

    def cancel(self) -> None:
        """End it: it does not become due any more, unless it is already. Idempotent."""

@disjoint_base
class Queue(_Queue):
    """The native half of :class:`quire.Queue`; see :func:`quire.open` for the options."""

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        roll_cycle: str | None = None,
        read_only: bool = False,
        create: bool = True,
        clock: ManualClock | Callable[[], int] | None = None,
        epoch_ms: int | None = None,
        roll_time: str | None = None,
        roll_time_zone: str | None = None,
        index_count: int | None = None,
        index_spacing: int | None = None,
        wire_type: str | None = None,
        block_bytes: int | None = None,
        source_id: int = 0,
        timeout_ms: int = 10_000,
        force_unlock: Literal["dead", "never", "always"] = "dead",
        double_buffer: bool = False,
        eof_grace_ms: int | None = ...,  # 1_000
        file_mode: int = 0o600,
        allow_network: bool = False,
        pretouch: bool = True,
        low_space_percent: int = 5,
        low_space_bytes: int | None = None,
        durability: Literal["process", "batch", "each"] = "process",
        group_commit_us: int | None = None,
        metrics: bool = False,
        time_index: bool = False,
        append_checksums: bool = False,
        max_clock_ahead_ms: int | None = None,
        file_events: bool = False,
        read_after_replica_acknowledged: bool = False,
        read_buffer_mode: Literal["async"] | None = None,
        write_buffer_mode: Literal["async"] | None = None,
        buffer_capacity_bytes: int | None = None,
        on_full: Literal["block", "raise", "grow"] = "block",
        cipher: Cipher | None = None,
        without_key: bool = False,
        compression: str | None = None,
    ) -> Self: ...
    @property
    def _file_events(self) -> FileEvents | None:
        """What a listener for files waits on, with ``file_events=True``."""

    @property
    def roll_cycle(self) -> RollCycle:
        """How the queue is split into files."""

    @property
    def epoch_ms(self) -> int:
        """The start of cycle 0, in epoch milliseconds."""

    @property
    def wire_type(self) -> str:
        """
        The encoding of the messages, such as ``BINARY_LIGHT``.

        Without the option ``wire_type``, that of the newest file is used.
        """

    @property
    def source_id(self) -> int:
        """The id of the queue in message histories; 0 for none."""

    @property
    def block_bytes(self) -> int:
        """The size by which files grow, in bytes."""

    @property
    def first_index(self) -> int | None:
        """
        The index of the oldest message that can be read; None while the queue is empty.

        A damaged file is skipped and logged.
        """

    @property
    def last_index(self) -> int | None:
        """
        The index of the newest message; None while the queue is empty.

        It may lag behind other processes, but never runs ahead.
        """

    @property
    def ring(self) -> Ring | None:
        """The ring of asynchronous appends; None if this queue does not use it."""

    @property
    def last_index_synced(self) -> int | None:
        """The index up to which the queue is known to be synced; None if unknown."""

    @property
    def last_acknowledged_index(self) -> int | None:
        """
        The index of the last message that a replica has acknowledged; None if none has.

        If several replicas follow the queue, that of the most advanced one.
        """

    @property
    def entry_count(self) -> int:
        """
        The number of messages in the queue. Finds the end of each cycle's file.

        A damaged file counts as empty and is logged; :meth:`end_of_cycle` raises for it.
        """

    def count_excerpts(self, from_index: int, to_index: int) -> int:
        """
        Count the messages from the lower index (inclusive) to the higher one (exclusive).

        As in Java, the order of the two does not matter: the count is never negative.

        Raises:
            IndexOutOfRangeError: An index lies in a cycle that has no file, or past its end.

        """

    @property
    def cycles(self) -> list[int]:
        """The cycles that have a file, ascending."""

    @property
    def current_cycle(self) -> int:
        """
        The cycle at the time of the queue's clock, as Java's ``queue.cycle()``.

        The next message goes there, or to the newest cycle that has a file if that is later.
        """

    def cycle_at(self, time_ms: int) -> int:
        """
        Return the cycle that contains a time, by the queue's epoch and time zone.

        Args:
            time_ms: The time, in epoch milliseconds.

        Raises:
            IndexOutOfRangeError: The time is before the first cycle.

        Examples:
            >>> queue.cycle_at(1_705_314_600_000)
            19737

        """

    def cycle_start_ms(self, cycle: int) -> int:
        """
        Return when a cycle starts, in epoch milliseconds.

        Examples:
            >>> queue.cycle_start_ms(19737)
            1705276800000

        """

    @property
    def roll_time_zone(self) -> str:
        """The IANA name of the zone whose clocks decide when cycles start, or ``UTC``."""

    @property
    def current_file(self) -> str:
        """The path of the file of :attr:`current_cycle`, which may not exist yet."""

    def file_for_cycle(self, cycle: int) -> str:
        """
        Return the path of the cycle's file, whether or not it exists.

        If the cycle was compressed, that is the compressed file.
        """

    def refresh(self) -> None:
        """List the directory again, for instance after files were removed by hand."""

    def _messages_before(self, cycle: int, time_ms: int, /) -> int | None:
        """Return how many messages of a cycle are known to have been appended before a time."""

    def _append_times_ms(self, indexes: list[int], /) -> list[int | None]:
        """
        Return when messages were appended, as the indexes of append times of their cycles have it.

        Args:
            indexes: Of messages, best ascending.

        Returns:
            Milliseconds since 1970; None for messages that no such index has (yet).

        """

    def _table_identity(self) -> tuple[int, int] | None:
        """Return device and inode number of the table store; None without one."""

    def _table_used(self) -> tuple[int, bool] | None:
        """Return the used percentage of the table store, and whether little room is left in it."""

    def _note_acknowledged(self, index: int, /) -> None:
        """Note that a replica has the messages up to an index."""

    def _wake_sleepers(self) -> None:
        """Have readers that sleep look again."""

    @property
    def _index_shape(self) -> tuple[int, int]:
        """Slots of an index array of a new file, and every n-th message that gets one."""

    def _announce_removal(self, first_left: int, /) -> None:
        """Record that all files before this cycle's are about to be removed."""

    def _announce_compression(self, cycle: int, /) -> None:
        """Record that a cycle is about to be compressed."""

    def dump(self) -> str:
        """Return every document of every file as text, as Java's ``DumpMain`` prints them."""

    def table_value(self, key: str) -> int | None:
        """Return the value of a key of the table store, or None. Keys are case-insensitive."""

    def table_entries(self) -> list[tuple[str, int]]:
        """
        Return every key of the table store with its value, in order of creation.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> dict(queue.table_entries())["listing.lowestCycle"]
            19737

        """

    def named_tailers(self) -> list[tuple[str, int]]:
        """
        Return the name of each named tailer with the index it reads next.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.tailer("risk") as tailer:
            ...     _ = tailer.read_text()
            >>> [(name, hex(index)) for name, index in queue.named_tailers()]
            [('risk', '0x4d1900000001')]

        """

    def _count_shared(self, counter: str, count: int, /) -> None:
        """Add to a counter of what consumer groups do, by its name in the metrics."""

    def _metrics(
        self,
    ) -> (
        tuple[
            tuple[int, int],
            list[tuple[str, int]],
            list[tuple[str, tuple[int, int, list[tuple[int, int, int]]]]],
        ]
        | None
    ):
        """
        Return the counts of the queue's processes; None without metrics.

        Returns:
            When counting began in epoch milliseconds, the counters, and of each latency the sum,
            the highest value, and the buckets: lowest value, lowest of the next bucket, count.

        """

    def delete_tailer(self, name: str) -> bool:
        """
        Delete a named tailer and its position; return whether there was one.

        A tailer of Java, or one opened with ``shared=True``, is not noticed: its position is lost.

        Raises:
            TailerInUseError: A tailer reads with the name.
            ReadOnlyError: The queue was opened read-only.

        """

    def rename_tailer(self, name: str, new_name: str) -> bool:
        """
        Give a named tailer another name; return whether there was one.

        If the process is killed meanwhile, both names may exist.

        Raises:
            TailerInUseError: A tailer reads with the name.
            ReadOnlyError: The queue was opened read-only.
            ValueError: *new_name* is in use, is not a valid name, or one of the two names begins
                with ``replicated:``.

        Examples:
            >>> queue.tailer("risk").close()
            >>> queue.rename_tailer("risk", "limits")
            True
            >>> queue.named_tailers()
            [('limits', 0)]

        """

    def _position_of(self, index: int, /) -> int | None:
        """Return where a message lies in its file; None if there is none."""

    def _stored_at(self, index: int, /) -> bytes | None:
        """Return a message as it is stored; None if there is none."""

    def _keyed_hash(self, content: bytes, /) -> int | None:
        """Return a hash that says nothing without the queue's key; None: there is no key."""

    def _explain(self, index: int, /) -> tuple[str, list[_Part]] | None:
        """Return the file of a message and the parts of its bytes; None if there is none."""

    def _lock_held_since_ms(self, pid: int) -> int | None:
        """Return when the process took the write lock, in epoch milliseconds; None: no record."""

    def _unlock(self, key: str, *, force: bool) -> tuple[int, bool] | None:
        """Free a lock of the table; return who held it, and whether that process lives."""

    def lock_holder(self, key: str) -> tuple[int, bool] | None:
        """
        Return the pid that holds the lock of a key and whether it is alive; None if unlocked.

        Examples:
            >>> queue.lock_holder("chronicle.write.lock") is None
            True

        """

    def end_of_cycle(self, cycle: int) -> tuple[int, int, bool] | None:
        """
        Return where the documents of a cycle's file end.

        Returns:
            The position, the number of messages, and whether an end-of-file marker follows; None
            if the file does not exist or is still being created.

        Raises:
            CorruptError: The file is damaged, or unfinished although a later one has messages.

        """

    def _write_position(self, cycle: int) -> int | None:
        """
        Return the position of the last message, as recorded in a cycle's file.

        It lies past the end (:meth:`end_of_cycle`) if messages in between were lost.

        Returns:
            0 before the first message; None if the file does not exist or is unfinished.

        """

    def _check_end(self, index: int) -> None:
        """
        Check that no messages lie after an index that a reader came to and found nothing at.

        Raises:
            CorruptError: Messages follow the index in its file: one before them was lost.

        """

    def _index_spacing(self, cycle: int) -> int:
        """Return how many messages each entry of the index of a cycle's file stands for."""

@disjoint_base
class Appender(_Handle):
    """
    Writes messages at the end of a queue. Safe to use from any thread; calls are serialised.

    Every write returns the index of the last message it wrote. With *wait*, it does so once
    replicas have acknowledged it: ``"any"`` member of the in-sync set, ``"all"`` of them, or a
    number of them, for at most the queue's ``timeout_s``. A metadata document never waits.

    Args:
        queue: The queue.
        wait: What each write without a *wait* of its own waits for; None: it does not wait.

    Raises:
        ReadOnlyError: The queue was opened read-only.
        ReplicationError: *wait* was given, and the queue is not replicated; nothing was written.
        WaitTimeoutError: Replicas did not acknowledge in time; the message stays in the queue.
        LockTimeoutError: A live process held the write lock, or a lock on the file, for too long.
        AppendLockedError: Only a replication sink may append to the queue.
        DocumentOpenError: This thread has a document open.
        LockLostError: The write lock was taken over meanwhile; nothing was published.
        MessageTooLargeError: The message does not fit; nothing was written.
        CycleFullError: The cycle cannot hold another message; nothing was written.
        OSError: The disk is full, or the system reported another failure; nothing was published.

    """

    def __new__(cls, queue: Queue, *, wait: Literal["any", "all"] | int | None = None) -> Self: ...
    def write_bytes(
        self, payload: BufferLike, /, *, wait: Literal["any", "all"] | int | None = None
    ) -> int:
        """
        Append *payload*, any contiguous buffer of at least one byte.

        Raises:
            ValueError: The payload is empty.

        """

    def write_text(self, text: str, /, *, wait: Literal["any", "all"] | int | None = None) -> int:
        """Append a string as a BinaryWire text value, as Java's ``writeText``."""

    def write_map(
        self, values: Mapping[str, Value], /, *, wait: Literal["any", "all"] | int | None = None
    ) -> int:
        """
        Append a mapping of names to values, as Java's ``writeMap``.

        Examples:
            >>> index = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> tailer.read_map()
            {'symbol': 'EURUSD', 'price': 1.1}

        """

    def write_message(
        self,
        message: Any,
        cls: type | None = None,
        /,
        *,
        typed: bool = False,
        wait: Literal["any", "all"] | int | None = None,
    ) -> int:
        """
        Append an object of a class registered with :func:`quire.message`.

        Args:
            message: The object. Its fields are written with their names.
            cls: Its class, for a dictionary: that of a ``TypedDict``.
            typed: Write the alias of its class first, so that a reader need not know the class.
            wait: As for the appender.

        Raises:
            TypeError: The class is not registered, or the object is not of it.
            WireError: A field's value does not fit its type; nothing was written.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Trade:
            ...     symbol: str
            ...     price: float
            >>> index = appender.write_message(Trade("EURUSD", 1.1))
            >>> tailer.read_message(Trade)
            Trade(symbol='EURUSD', price=1.1)

        """

    def write_many(
        self,
        payloads: Iterable[BufferLike],
        /,
        *,
        wait: Literal["any", "all"] | int | None = None,
    ) -> int | None:
        """
        Append each payload, taking the write lock once; None if there are no payloads.

        An error about a payload has a note with its number and how many were appended: none of a
        list or tuple, and the earlier batches of 10,000 of an iterator.

        Examples:
            >>> last = appender.write_many(b"%d" % number for number in range(1000))
            >>> queue.entry_count
            1000

        """

    def _check_wait(self, wait: Literal["any", "all"] | int | None, /) -> tuple[int, int] | None:
        """
        Raise what an append with *wait*, or with that of the appender, would before it.

        Returns:
            The history of :meth:`ReplicaStates.reached`; None if it would not wait.

        """

    def _wait_for(
        self,
        index: int,
        wait: Literal["any", "all"] | int | None,
        /,
        *,
        timeout_s: float | None = None,
        history: tuple[int, int] | None = None,
        waited_s: float = 0.0,
    ) -> None:
        """
        Wait as an append of this index does; *timeout_s* instead of the queue's.

        *history* is what :meth:`_check_wait` has returned before the append; None: that of now.
        The error of a wait that fails adds *waited_s*.
        """

    def _write_column(
        self,
        offsets: BufferLike,
        data: BufferLike,
        *,
        count: int,
        start: int,
        wide: bool,
        text: bool,
        note: bytes | None = None,
    ) -> int | None:
        """
        Append the elements of an Arrow binary or string column.

        Args:
            offsets: Its offsets buffer, of int32 or, if *wide*, int64.
            data: Its data buffer.
            count: The number of elements.
            start: The position of the first element in *offsets*.
            wide: Offsets are 64 bits wide.
            text: Write each as a text value instead of raw bytes.
            note: A metadata document to write first, with no message of others between.

        """

    def writing_document(
        self, *, metadata: bool = False, wait: Literal["any", "all"] | int | None = None
    ) -> WriteDocument:
        """
        Open a document, which is committed on a clean exit and rolled back on an exception.

        The write lock is held until the document closes: another append from the same thread
        raises, and other threads and processes wait.

        Args:
            metadata: Write a metadata document, which readers of messages skip.
            wait: As for the appender: closing the document waits, without the lock.

        Examples:
            >>> with appender.writing_document() as document:
            ...     document.write("symbol", "EURUSD")
            ...     document.write("legs", [1, 2])
            >>> tailer.read_map()
            {'symbol': 'EURUSD', 'legs': [1, 2]}

        """

    def _without_waiting(self, write: Callable[[], _T], /, *, waited_ms: int | None = None) -> _T:
        """
        Call *write*, whose first append raises instead of waiting for the write lock or the ring.

        With *waited_ms*, the append fails as one that has waited that long.
        """

    @property
    def _is_locked(self) -> bool: ...
    @property
    def _lock_timeout_s(self) -> float: ...
    @property
    def _timeout_s(self) -> float: ...
    @property
    def _waits_for_disk(self) -> bool:
        """Whether an append returns only once it is on the medium, or replicas have it."""

    @property
    def _waits_for_room(self) -> bool:
        """Whether an append waits when the ring of asynchronous appends is full."""

    @property
    def _has_field_names(self) -> bool:
        """Whether messages of the queue hold field names: False for ``FIELDLESS_BINARY``."""

    @property
    def last_index_appended(self) -> int | None:
        """The index of the last message this appender wrote; None before the first."""

    def normalise_eofs(self) -> None:
        """Write the end-of-file marker into every older cycle that lacks one."""

    def sync(self) -> None:
        """
        Flush to disk: when this returns, every message now in the queue is durable.

        Raises:
            OSError: The system failed to write; messages may not be durable. All later calls fail
                too, until the queue is closed: the system forgets which pages it could not write.

        """

@final
class Method:
    """
    A method of an interface, as it is encoded in messages.

    Args:
        name: Its name, in Latin-1.
        parameters: For each, its name, its kind, and a tuple with its default, if any.
        id: The number written instead of the name.
        next: The methods of what a call returns, by name.

    """

    def __new__(
        cls,
        name: str,
        parameters: Sequence[tuple[str, Kind, tuple[object, ...]]],
        *,
        id: int | None = None,
        next: dict[str, Method] | None = None,
    ) -> Method: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> int | None:
        """The number written instead of the name, if it has one."""

    @property
    def parameters(self) -> list[tuple[str, Kind]]: ...
    @property
    def next(self) -> dict[str, Method] | None: ...
    def event_bytes(self, *given: object, **named: object) -> bytes:
        """Return a call, encoded as by a method writer."""

@final
class MethodWriter:
    """The native half of :meth:`quire.JournalAppender.method_writer`: the destination of calls."""

    def __new__(
        cls,
        appender: object,
        *,
        record_history: bool | None,
        history_form: str,
        metadata: bool = False,
        document: WriteDocument | None = None,
        filter: Callable[[str, Any], object] | None = None,
    ) -> MethodWriter: ...
    def method(self, method: Method) -> Callable[..., Chain | None]:
        """Return a callable that appends a call of this method."""

@final
class Call:
    """A method of a method writer, bound to it."""

    def call(self, first: object = ..., /, *rest: object, **named: object) -> Chain | None:
        """Call the method: append an event."""

@final
class Chain:
    """
    The result of a call that continues: the next call goes into the same document.

    The last call of the chain writes the document; a chain without its last call writes nothing.
    """

    @property
    def __quire_methods__(self) -> dict[str, Method]:
        """The methods, by name."""

    def __getattr__(self, name: str) -> Callable[..., Chain | None]: ...
    def __dir__(self) -> list[str]: ...

@final
class AwaitedDocument:
    """
    A document whose handlers are coroutines: awaiting it runs them, one after the other.

    If a handler fails or is cancelled, the message is read again.
    """

    def __await__(self) -> Generator[Any, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any, /) -> Any:
        """Resume the waiting handler."""

    def throw(self, kind: Any, value: Any = None, traceback: Any = None, /) -> Any:
        """Raise an exception in the waiting handler."""

    def close(self) -> None:
        """End the waiting handler; the message is read again."""

@disjoint_base
class MethodReader:
    """The native half of a method reader."""

    def __new__(
        cls,
        tailer: object,
        handlers: Sequence[tuple[Method, Callable[..., object]]],
        *,
        metadata: Sequence[tuple[Method, Callable[..., object]]] | None,
        default: Callable[[str | int, Any], object] | None,
        filter: Callable[[str, Any], object] | None,
        on_failure: Callable[[int, bytes, Exception], object] | None,
        scanning: bool,
    ) -> Self: ...
    @property
    def tailer(self) -> Any:
        """The tailer that the messages come from."""

    @property
    def closed(self) -> bool:
        """Whether the reader was closed."""

    def read_one(self) -> bool:
        """
        Read one message and call its handlers.

        Returns:
            False if there is no message yet; True otherwise, even if no handler takes the message,
            unless the reader is *scanning*.

        Raises:
            ClosedError: The reader or its tailer was closed.
            WireError: The message does not decode; the tailer's position stays at the message.
            Exception: A handler raised; the tailer stays at the message.

        """

    def read_many(self, count: int, /) -> int:
        """Call :meth:`read_one` up to *count* times; return how often it returned True."""

    def _read_awaiting(self, count: int, /) -> int | AwaitedDocument:
        """
        Read as :meth:`read_many` does, up to a document whose handler returned a coroutine.

        No other document is read until that one was awaited.
        """

    def close(self) -> None:
        """Close the reader. Its tailer stays open."""

@final
class WriteDocument(_Context):
    """
    One document being written, from :meth:`Appender.writing_document`.

    Examples:
        >>> with appender.writing_document() as document:
        ...     document.write("symbol", "EURUSD")
        ...     hex(document.index), document.is_metadata
        ('0x4d1900000000', False)

    """

    @property
    def index(self) -> int:
        """
        The index that the message has or will have.

        Raises:
            IndexNotAvailableError: The document is double-buffered and still open.

        """

    @property
    def is_metadata(self) -> bool:
        """Whether this is a metadata document."""

    def write(self, name: str, value: Value, /) -> None:
        """
        Append a named value, as an entry of Java's ``writeMap``.

        Raises:
            WireError: The value has no encoding.

        """

    def write_bytes(self, data: BufferLike, /) -> None:
        """
        Append raw bytes to the document.

        Examples:
            >>> with appender.writing_document() as document:
            ...     document.write_bytes(b"head")
            ...     document.write_bytes(b"tail")
            >>> tailer.read_bytes()
            b'headtail'

        """

    def write_message(
        self, message: Any, cls: type | None = None, /, *, typed: bool = False
    ) -> None:
        """Append an object; see :meth:`Appender.write_message`."""

    @property
    def wire(self) -> WireOut:
        """A writer of self-describing values, appended one after the other."""

    @property
    def raw(self) -> RawOut:
        """A writer of numbers and strings without type codes."""

    def reserve(self, length: int, /) -> memoryview:
        """
        Append *length* zero bytes and return them as memory, writable until the document closes.

        Raises:
            MessageTooLargeError: A message cannot be that long.

        Examples:
            >>> with appender.writing_document() as document:
            ...     document.reserve(2)[:] = b"ab"
            >>> tailer.read_bytes()
            b'ab'

        """

    def rollback_on_close(self) -> None:
        """Discard the document when it closes."""

    def close(self) -> None:
        """Publish the document, or discard it after :meth:`rollback_on_close`."""

@final
class WireOut:
    """
    Appends self-describing values to a document, from :attr:`WriteDocument.wire`.

    Examples:
        >>> with appender.writing_document() as document:
        ...     wire = document.wire
        ...     wire.write_event("trade")
        ...     wire.write_value({"symbol": "EURUSD", "price": 1.1})
        ...     wire.write("venue", "LSE")
        >>> print(tailer.read().to_yaml(), end="")
        trade: {
          symbol: EURUSD,
          price: 1.1
        }
        venue: LSE

    """

    def write(self, name: str, value: Any, /, type: Any = None) -> None:
        """
        Append a field.

        Args:
            name: The field's name, in Latin-1.
            value: The field's value.
            type: The annotation that says how to write it. None: by the value's own type, as
                :meth:`Appender.write_map`.

        Raises:
            WireError: The value does not fit the type, or has no encoding.

        """

    def write_value(self, value: Any, /, type: Any = None) -> None:
        """Append a value without a name; see :meth:`write`."""

    def write_event(self, name: str, /) -> None:
        """Append the name of an event; its value follows."""

    def write_event_id(self, number: int, /) -> None:
        """Append the number of an event; its value follows."""

    def write_type(self, name: str, /) -> None:
        """
        Append the type name of the value that follows.

        Examples:
            >>> with appender.writing_document() as document:
            ...     document.wire.write_type("Price")
            ...     document.wire.write_value(1.1)
            >>> tailer.read().to_json()
            '{"@Price":1.1}'

        """

    def write_comment(self, text: str, /) -> None:
        """Append a comment, which readers of fields skip."""

@final
class RawOut:
    """
    Appends numbers, little-endian, and strings without type codes, from :attr:`WriteDocument.raw`.

    Raises:
        WireError: The value does not fit.

    Examples:
        >>> with appender.writing_document() as document:
        ...     raw = document.raw
        ...     raw.write_bool(True)
        ...     raw.write_int8(-1)
        ...     raw.write_int16(-1)
        ...     raw.write_int32(-1)
        ...     raw.write_int64(-1)
        ...     raw.write_uint8(1)
        ...     raw.write_uint16(1)
        ...     raw.write_uint32(1)
        ...     raw.write_float32(0.5)
        ...     raw.write_float64(0.5)
        ...     raw.write_stop_bit(300)
        ...     raw.write_utf8("EURUSD")
        ...     raw.write_bytes(b"end")
        >>> len(tailer.read_bytes())
        47

    """

    def write_bool(self, value: bool, /) -> None:
        """Append a bool as one byte."""

    def write_int8(self, value: int, /) -> None:
        """Append a signed 8-bit integer."""

    def write_int16(self, value: int, /) -> None:
        """Append a signed 16-bit integer."""

    def write_int32(self, value: int, /) -> None:
        """Append a signed 32-bit integer."""

    def write_int64(self, value: int, /) -> None:
        """Append a signed 64-bit integer."""

    def write_uint8(self, value: int, /) -> None:
        """Append an unsigned 8-bit integer."""

    def write_uint16(self, value: int, /) -> None:
        """Append an unsigned 16-bit integer."""

    def write_uint32(self, value: int, /) -> None:
        """Append an unsigned 32-bit integer."""

    def write_float32(self, value: float, /) -> None:
        """Append a 32-bit float."""

    def write_float64(self, value: float, /) -> None:
        """Append a 64-bit float."""

    def write_stop_bit(self, value: int, /) -> None:
        """Append an integer in stop-bit encoding, which takes only the bytes it needs."""

    def write_utf8(self, text: str | None, /) -> None:
        """Append a UTF-8 string after its length as a stop-bit integer; None has length -1."""

    def write_bytes(self, data: BufferLike, /) -> None:
        """Append bytes as they are."""

@final
class WireIn:
    """
    Reads the self-describing values of a document, from :attr:`ReadDocument.wire`.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1, "size": 3})
        >>> with tailer.reading_document() as document:
        ...     wire = document.wire
        ...     wire.read("symbol")
        ...     wire.read_name(), wire.read_value()
        ...     wire.has_more
        ...     wire.read_name()
        ...     wire.skip_value()
        ...     wire.has_more
        'EURUSD'
        ('price', 1.1)
        True
        'size'
        False

    """

    @overload
    def read(self, name: str, /, type: type[_T]) -> _T: ...
    @overload
    def read(self, name: str, /, type: Any = None) -> Any:
        """
        Return the value of a field, wherever it is in the document.

        The search starts at the current position. The next read continues after the field.

        Args:
            name: The field's name.
            type: The annotation of the result; None: the type that the value was written with.

        Raises:
            WireError: The document has no such field, or the field's value does not fit the type.

        """

    @overload
    def read_value(self, type: type[_T]) -> _T: ...
    @overload
    def read_value(self, type: Any = None) -> Any:
        """Return the next value; see :meth:`read`."""

    def read_name(self) -> str | None:
        """Return the next name; None at the end."""

    def skip_value(self) -> None:
        """Skip the next value."""

    @property
    def has_more(self) -> bool:
        """Whether there is anything left to read."""

@final
class RawIn:
    """
    Reads numbers and strings without type codes, from :attr:`ReadDocument.raw`.

    Raises:
        WireError: The document ends too early.

    Examples:
        >>> with appender.writing_document() as document:
        ...     document.write_bytes(bytes(27) + b"A" * 8)
        ...     document.raw.write_utf8("EURUSD")
        ...     document.raw.write_stop_bit(300)
        >>> with tailer.reading_document() as document:
        ...     raw = document.raw
        ...     raw.read_bool()
        ...     raw.read_int8(), raw.read_int16(), raw.read_int32(), raw.read_int64()
        ...     raw.read_uint8(), raw.read_uint16(), raw.read_uint32()
        ...     raw.read_float32()
        ...     raw.position, raw.remaining
        ...     raw.position = 27
        ...     raw.read_float64()
        ...     raw.read_utf8(), raw.read_stop_bit()
        ...     raw.position = 31
        ...     raw.read_bytes(4)
        False
        (0, 0, 0, 0)
        (0, 0, 0)
        0.0
        (27, 17)
        2261634.5098039214
        ('EURUSD', 300)
        b'AAAA'

    """

    def read_bool(self) -> bool:
        """Return the next byte as a bool."""

    def read_int8(self) -> int:
        """Return a signed 8-bit integer."""

    def read_int16(self) -> int:
        """Return a signed 16-bit integer."""

    def read_int32(self) -> int:
        """Return a signed 32-bit integer."""

    def read_int64(self) -> int:
        """Return a signed 64-bit integer."""

    def read_uint8(self) -> int:
        """Return an unsigned 8-bit integer."""

    def read_uint16(self) -> int:
        """Return an unsigned 16-bit integer."""

    def read_uint32(self) -> int:
        """Return an unsigned 32-bit integer."""

    def read_float32(self) -> float:
        """Return a 32-bit float."""

    def read_float64(self) -> float:
        """Return a 64-bit float."""

    def read_stop_bit(self) -> int:
        """Return an integer in stop-bit encoding."""

    def read_utf8(self) -> str | None:
        """Return a string of :meth:`RawOut.write_utf8`."""

    def read_bytes(self, length: int, /) -> bytes:
        """Return the next *length* bytes."""

    @property
    def remaining(self) -> int:
        """The number of bytes left."""

    @property
    def position(self) -> int:
        """The offset of the next byte in the document. Can be set."""

    @position.setter
    def position(self, value: int, /) -> None: ...

@disjoint_base
class Tailer(_ChronicleTailer[Excerpt]):
    """
    Reads messages. Safe to use from any thread; calls are serialised.

    A named tailer resumes where it stopped and delivers at least once: a message counts as
    finished when the next one is requested, on :meth:`commit`, and when the tailer closes without
    an exception.

    A read that scans many messages checks for signals now and then, without holding any lock: a
    signal handler may use, move or close the tailer. If the handler raises, the tailer returns to
    the first message that was not delivered.

    "No message yet" means that there is no later message either: at the end of a file without an
    end-of-file marker, a read waits for the queue's ``eof_grace_s`` if necessary, and continues.
    """

    def __new__(
        cls,
        queue: Queue,
        name: str | None = None,
        *,
        on_missing: str = "warn",
        shared: bool = False,
    ) -> Self: ...
    @property
    def name(self) -> str | None:
        """The name under which the position is stored; None if the tailer is not named."""

    def read_map(self) -> dict[str, Any] | None:
        """
        Return the next message as a dict; None if there is none yet.

        Raises:
            WireError: The message is not a sequence of named values; the position stays.

        """

    @overload
    def read_message(self, cls: type[_T], /) -> _T | None: ...
    @overload
    def read_message(self, cls: None = None, /) -> Any:
        """
        Return the next message as an object; None if there is none yet.

        Args:
            cls: A class registered with :func:`quire.message`. None: the registered class that
                the message names.

        Raises:
            WireError: The message is not of this class; the position stays.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Order:
            ...     symbol: str
            ...     size: int
            >>> _ = appender.write_message(Order("EURUSD", 3), typed=True)
            >>> tailer.read_message()
            Order(symbol='EURUSD', size=3)

        """

    @overload
    def read_messages(self, cls: type[_T], count: int, /) -> list[_T]: ...
    @overload
    def read_messages(self, cls: None, count: int, /) -> list[Any]:
        """
        Return up to *count* messages as objects; an empty list if there is none yet.

        They are finished together, when the next ones are requested. A message that does not
        decode ends the list, and the next call raises its error.

        Args:
            cls: A class registered with :func:`quire.message`. None: the registered class that
                each message names.
            count: The largest number to return.

        Raises:
            WireError: The first message is not of this class; the position stays.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Tick:
            ...     price: float
            >>> for price in (1.1, 1.2):
            ...     _ = appender.write_message(Tick(price))
            >>> tailer.read_messages(Tick, 100)
            [Tick(price=1.1), Tick(price=1.2)]

        """

    def release_resources(self) -> None:
        """
        Close the files and release the memory that this tailer holds.

        The position stays, and the next read opens the files again. Documents and batches read
        before stay valid; memory that was kept for further batches is freed. For processes with
        many tailers that rarely read.
        """

    def _read_decoded(
        self,
        plan: Plan,
        count: int,
        *,
        max_bytes: int,
        keep_misfits: bool = False,
        layout: str = "tables",
        end: int | None = None,
        payload: bool = False,
        topic: str | None = None,
    ) -> tuple[int, list[Table], Column | None, Column | None]:
        """
        Decode up to *count* messages into buffers; see :meth:`quire.Tailer.read_batch`.

        Args:
            plan: What is decoded into which columns.
            count: The largest number of messages.
            max_bytes: The largest total size, unless a single message exceeds it.
            keep_misfits: Messages that do not fit become rows without values; else WireError.
            layout: For calls: ``tables``, ``union``, or the name of one method.
            end: Only messages before this index.
            payload: Also the bytes of the message, for each row; not with the layout ``tables``.
            topic: Also the keys of the event of this name, as text, for each row.

        Returns:
            The number of messages read, including those without a row; the tables, the bytes, the
            keys.

        """

    def reading_document(self, *, include_metadata: bool = False) -> ReadDocument:
        """
        Return the next document, open; its ``is_present`` is False if there is none yet.

        Args:
            include_metadata: Also return metadata documents.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD"})
            >>> with tailer.reading_document() as document:
            ...     document.is_present, document.map()
            (True, {'symbol': 'EURUSD'})

        """

    @property
    def index(self) -> int:
        """The index of the message that the next read returns or waits for; 0 before any."""

    @property
    def state(self) -> str:
        """Chronicle's name of the tailer's state, such as ``FOUND_IN_CYCLE``."""

    @property
    def striding(self) -> bool:
        """
        Whether reads backward visit only the messages that the index names. Can be set.

        These are every ``index_spacing``-th of a cycle, from its first, and the last message of
        each earlier cycle; they are found without a walk. Reads forward visit every message.

        Examples:
            >>> _ = appender.write_many([b"%d" % number for number in range(600)])
            >>> tailer.direction, tailer.striding = "backward", True
            >>> tailer.to_end()
            >>> tailer.read_many(10)
            [b'599', b'512', b'256', b'0']

        """

    @striding.setter
    def striding(self, value: bool, /) -> None: ...
    def _set_topics(self, routes: list[bytes] | None, /) -> None:
        """See :meth:`quire.JournalTailer.topics`; each key is encoded by :func:`entry_bytes`."""

    @property
    def _topic_number(self) -> int | None:
        """The position of the last message's key in :meth:`_set_topics`; None without one."""

    def commit(self) -> None:
        """
        Store the position of a named tailer: every message received so far is finished.

        Examples:
            >>> _ = appender.write_many([b"one", b"two"])
            >>> with queue.tailer("risk") as tailer:
            ...     _ = tailer.read_bytes()
            ...     tailer.commit()
            >>> with queue.tailer("risk") as tailer:
            ...     tailer.read_bytes()
            b'two'

        """

    @property
    def history(self) -> MessageHistory | None:
        """
        The history of the message read last; None if it has none.

        Raises:
            WireError: The message starts with a history that does not decode.

        """

    def after_last_written(self, output: Queue, /) -> None:
        """
        Move to the first message of this queue that is not yet reflected in *output*.

        That is the message after the source of the newest message of *output*. Moves to the start
        if no message of *output* came from this queue.

        Args:
            output: A queue to which a reader of this one writes with history.

        Raises:
            ValueError: This queue has no source id, or *output* is this queue.
            IndexOutOfRangeError: The message no longer exists.

        """

    def move_to_index(self, index: int, /) -> bool:
        """
        Move to *index*; return True if there is a message.

        Raises:
            IndexOutOfRangeError: No message can have this index.

        """

    def close(self) -> None:
        """Close the tailer, storing the position of a named one. Idempotent."""

@final
class MessagePacker:
    """
    Fields of a message to be written, from :meth:`QuickAppender.new_message`.

    Fields have neither names nor types in the message: a reader must know their order. Calls chain.

        appender.new_message().pack_int(1).pack_string("A").write_message()
    """

    def pack_byte(self, value: int, /) -> Self:
        """
        Add a signed integer of 8 bits.

        Raises:
            ValueError: The value does not fit 8 bits.

        """

    def pack_boolean(self, value: bool, /) -> Self:
        """Add a boolean, one byte."""

    def pack_short(self, value: int, /) -> Self:
        """
        Add a signed integer of 16 bits.

        Raises:
            ValueError: The value does not fit 16 bits.

        """

    def pack_char(self, value: str, /) -> Self:
        """
        Add one UTF-16 unit.

        Raises:
            ValueError: The text is not exactly one UTF-16 unit.

        """

    def pack_int(self, value: int, /) -> Self:
        """
        Add a signed integer of 32 bits.

        Raises:
            ValueError: The value does not fit 32 bits.

        """

    def pack_long(self, value: int, /) -> Self:
        """
        Add a signed integer of 64 bits.

        Raises:
            ValueError: The value does not fit 64 bits.

        """

    def pack_float(self, value: float, /) -> Self:
        """
        Add a number of 32 bits, rounded.

        Raises:
            ValueError: The value is too large for 32 bits.

        """

    def pack_double(self, value: float, /) -> Self:
        """Add a number of 64 bits."""

    def pack_string(self, value: str, /) -> Self:
        """
        Add ASCII text, ended by a NUL character.

        Raises:
            ValueError: The text contains a NUL or a character that is not ASCII.

        """

    def pack_unicode(self, value: str, /) -> Self:
        """
        Add any text as UTF-16, ended by a NUL character.

        Raises:
            ValueError: The text contains a NUL.

        """

    def pack_decimal(self, value: Decimal | int, /) -> Self:
        """
        Add a decimal number, exactly: Java's ``BigDecimal``.

        Raises:
            ValueError: The number is infinite or not a number, or its exponent exceeds 32 bits.

        """

    def pack_big_integer(self, value: int, /) -> Self:
        """Add an integer of any size after its length: Java's ``BigInteger``."""

    def pack_bytes(self, value: BufferLike, /) -> Self:
        """Add bytes after their length, as Java's ``unpackArray`` reads them."""

    def pack_raw(self, value: BufferLike, /) -> Self:
        """Add bytes without their length, which the reader must know."""

    def write_message(self) -> int:
        """
        Append the message, and return its index; what is packed next is another message.

        Raises:
            ValueError: No field was packed.

        """

    def discard(self) -> None:
        """Drop the fields that were packed."""

    def __len__(self) -> int:
        """Return how many bytes are packed."""

@final
class MessageUnpacker:
    """
    Fields of a message, from :meth:`QuickExcerpt.unpack`, in the order they were packed.

    Each call checks what it reads: past the end of the message, or where the bytes are no such
    field, it raises :class:`quire.errors.WireError` and leaves the position.

    Examples:
        >>> message = quire.MessageUnpacker(bytes([7, 0, 0, 0, 1]))
        >>> message.unpack_int()
        7
        >>> message.position, message.remaining
        (4, 1)

    """

    def __new__(cls, message: BufferLike, /) -> MessageUnpacker: ...
    def unpack_byte(self) -> int:
        """Return the next field, a signed integer of 8 bits."""

    def unpack_boolean(self) -> bool:
        """Return whether the next byte is 1."""

    def unpack_short(self) -> int:
        """Return the next field, a signed integer of 16 bits."""

    def unpack_char(self) -> str:
        """Return the next field, one UTF-16 unit."""

    def unpack_int(self) -> int:
        """Return the next field, a signed integer of 32 bits."""

    def unpack_long(self) -> int:
        """Return the next field, a signed integer of 64 bits."""

    def unpack_float(self) -> float:
        """Return the next field, a number of 32 bits."""

    def unpack_double(self) -> float:
        """Return the next field, a number of 64 bits."""

    def unpack_string(self) -> str:
        """Return the next field, ASCII text."""

    def unpack_unicode(self) -> str:
        """Return the next field, UTF-16 text."""

    def unpack_decimal(self, *, legacy: bool = False) -> Decimal:
        """
        Return the next field, a decimal number.

        Args:
            legacy: Read a number of more than 127 bytes or an exponent beyond 128 as Java's writer
                stores it, without a length: it takes all that is left of the message.

        """

    def unpack_big_integer(self) -> int:
        """Return the next field, an integer of any size after its length."""

    def unpack_bytes(self) -> bytes:
        """Return the next field, bytes after their length."""

    def unpack_raw(self, count: int, /) -> bytes:
        """Return the next *count* bytes."""

    @property
    def position(self) -> int:
        """Where the next field starts."""

    @property
    def remaining(self) -> int:
        """The number of bytes that are not read yet."""

@final
class QuickExcerpt:
    """
    One message of a Quick-Queue. Equal by value, hashable, picklable.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book:
        ...     _ = book.appender("AA0").write_bytes(b"an order")
        ...     for excerpt in book.tailer():
        ...         print(excerpt.index, excerpt.producer, excerpt.data)
        0 AA0 b'an order'

    """

    def __new__(cls, index: int, data: bytes, producer: str | None = None) -> QuickExcerpt: ...
    def _repr_html_(self) -> str: ...
    @property
    def index(self) -> int:
        """The index of the message: a multiple of 16."""

    @property
    def producer(self) -> str | None:
        """The producer of the message; None in a queue with one writer."""

    @property
    def data(self) -> bytes:
        """The bytes of the message, as a copy."""

    @property
    def view(self) -> memoryview:
        """
        The bytes where they lie in the file, without a copy; they never change.

        A message that crosses pages is copied. A view keeps its page mapped.
        """

    def unpack(self) -> MessageUnpacker:
        """Return a reader of the message's fields, at the first one. It keeps the page mapped."""

    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[QuickExcerpt], tuple[int, bytes, str | None]]: ...

@disjoint_base
class QuickQueue(_Queue):
    """An open Quick-Queue. See :class:`quire.quick_queue.QuickQueue`."""

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        page_bytes: int | None = None,
        file_mode: int = 0o600,
        allow_network: bool = False,
    ) -> Self: ...
    @property
    def page_bytes(self) -> int:
        """The length of each file of the queue, in bytes."""

    @property
    def form(self) -> Literal["single", "shared"] | None:
        """Whether one writer or named producers write the queue; None before the first appender."""

    @property
    def end_index(self) -> int:
        """
        The index of the next message, at the least.

            tailer = queue.tailer(start=queue.end_index)  # what comes from now on
        """

    def force(self) -> None:
        """
        Return when every message of the queue is on the medium, by any writer.

        Data is synced before the index that names it. Without it the system writes in its own time:
        what was written survives the end of the process, but not a power cut.

        Raises:
            OSError: The messages may not be durable. All later calls fail too, until the queue is
                closed.

        """

    def _explain(self, index: int, /) -> tuple[str, list[_Part]] | None:
        """Return the file of a message and the parts of its bytes; None if there is none."""

    def _verify(self) -> _Report:
        """Check every entry and page, as ``verify_journal`` does a journal."""

    def _snapshot(self) -> _Snapshot:
        """Return the files and lengths of a consistent copy of the queue."""

@disjoint_base
class QuickAppender(_Handle):
    """Writes messages at the end of a Quick-Queue. See :class:`quire.quick_queue.QuickAppender`."""

    def __new__(cls, queue: QuickQueue, producer: str | None = None) -> Self: ...
    @property
    def producer(self) -> str | None:
        """The producer's name; None for the one writer of a queue."""

    def new_message(self) -> MessagePacker:
        """
        Return a packer for the fields of a message.

            appender.new_message().pack_int(1).pack_boolean(True).write_message()
        """

    def write_bytes(self, payload: BufferLike, /) -> int:
        """Append a message of at least one byte, and return its index."""

    def write_text(self, text: str, /) -> int:
        """Append a message of the text as UTF-8, without an end mark, and return its index."""

    def write_many(self, payloads: Iterable[BufferLike], /) -> int | None:
        """
        Append many messages, and return the index of the last one; None when there is none.

        What came before a payload that fails stays, where *payloads* is an iterator.
        """

    def _write_column(
        self, offsets: BufferLike, data: BufferLike, *, count: int, start: int, wide: bool
    ) -> int | None: ...
    def force(self) -> None:
        """Return when every message of the queue is on the medium; see :meth:`QuickQueue.force`."""

@disjoint_base
class QuickTailer(_Tailer[QuickExcerpt]):
    """
    Reads messages of a Quick-Queue. May be used from any thread; calls are serialised.

    See :class:`quire.quick_queue.QuickTailer`.
    """

    def __new__(
        cls, queue: QuickQueue, *, start: int | None = None, on_dead: str = "skip"
    ) -> Self: ...
    @property
    def index(self) -> int:
        """
        The index of the next message.

            position = tailer.index  # keep it, and go on with queue.tailer(start=position)
        """

    def read_text(self) -> str | None:
        """
        Return the next message as UTF-8 text, or None when nothing is there yet.

        Raises:
            UnicodeDecodeError: The message is not UTF-8 text; the position stays.

        """

    def move_to_index(self, index: int, /) -> bool:
        """
        Go to *index*; True when an entry is there. Beyond the last one it goes to the end.

        Raises:
            ValueError: *index* is not a multiple of 16.

        """

@final
class ReadDocument(_Context):
    """
    One document being read, from :meth:`Tailer.reading_document`.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        >>> with tailer.reading_document() as document:
        ...     document.is_present, document.is_metadata, hex(document.index)
        ...     document.map()
        ...     document.to_json()
        ...     len(document.bytes)
        (True, False, '0x4d1900000000')
        {'symbol': 'EURUSD', 'price': 1.1}
        '{"symbol":"EURUSD","price":1.1}'
        31

    """

    @property
    def is_present(self) -> bool:
        """Whether there is a document; False if there is none yet."""

    @property
    def is_metadata(self) -> bool:
        """Whether this is a metadata document."""

    @property
    def index(self) -> int:
        """The index of the message."""

    @property
    def bytes(self) -> memoryview:
        """
        The payload, without a copy.

        Slices keep the file mapped; the bytes of a published message never change.

        Raises:
            ClosedError: The document was closed.

        """

    def text(self) -> str:
        """Return the document as text, as :meth:`quire.JournalTailer.read_text`."""

    def map(self) -> dict[str, Any]:
        """Return the document as a dict, as :meth:`Tailer.read_map`."""

    @property
    def history(self) -> MessageHistory | None:
        """The history of the message; None if it has none."""

    def to_yaml(self) -> str:
        """Return the document as YAML; see :func:`quire.types.to_yaml`."""

    def to_json(self) -> str:
        """Return the document as one line of JSON; see :func:`quire.types.to_json`."""

    def to_dict(self) -> dict[Any, Any]:
        """Return the named values of the document; see :meth:`Excerpt.to_dict`."""

    @overload
    def message(self, cls: type[_T], /) -> _T: ...
    @overload
    def message(self, cls: None = None, /) -> Any:
        """Return the document as an object; see :meth:`Tailer.read_message`."""

    @property
    def wire(self) -> WireIn:
        """A reader of self-describing values, one after the other."""

    @property
    def raw(self) -> RawIn:
        """A reader of values without type codes, continuing where :attr:`wire` stands."""

    def rollback_on_close(self) -> None:
        """Read the same document again next time."""

    def close(self) -> None:
        """Close the document. The tailer moves on, unless :meth:`rollback_on_close` was called."""

# Messages as text.

def to_yaml(message: BufferLike, /) -> str:
    """
    Return a message as YAML, in the form of Java's dump.

    Args:
        message: The payload of a message.

    Raises:
        WireError: The message is not well-formed BinaryWire.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        >>> print(quire.types.to_yaml(tailer.read_bytes()), end="")
        symbol: EURUSD
        price: 1.1

    """

def to_json(message: BufferLike, /) -> str:
    """
    Return a message as JSON, on one line.

    Type names enclose their values, as in Java's JSON wire: ``{"@Trade":{"price":1.5}}``, bytes
    as ``{"@!binary":"AQID"}``. Keys that are not strings become text, floats that are not numbers
    become ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, and dates and times become text.

    Args:
        message: The payload of a message.

    Raises:
        WireError: The message is not well-formed BinaryWire, or contains a lone surrogate.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        >>> quire.types.to_json(tailer.read_bytes())
        '{"symbol":"EURUSD","price":1.1}'

    """

def parse_yaml(text: str, /) -> bytes:
    """
    Return the message that a YAML text describes, such as one from :func:`to_yaml`.

    The names of the message and of untyped maps become event names and keys, those of typed maps
    (``!Trade {...}``) field names. Plain integers are 64 bits wide unless ``!byte``, ``!short`` or
    ``!int`` says otherwise; plain floats are 64 bits wide. ``true``, ``false``, numbers, ``NaN``,
    ``Infinity``, dates and times are recognised; ``null`` and ``~`` are strings, as in Java's
    dump, where null is ``!!null ""``. Names may repeat. Anchors and aliases are refused.

    Raises:
        WireError: The text cannot be parsed; the error has the line and column.

    Examples:
        >>> payload = quire.types.parse_yaml("symbol: EURUSD")
        >>> quire.types.to_json(payload)
        '{"symbol":"EURUSD"}'

    """

def _parse_shown(text: str, /) -> bytes:
    """Encode JSON that is to be shown: an integer of more than 64 bits becomes a float."""

def field_json(name: str, offsets: BufferLike, data: BufferLike, /) -> list[str | None]:
    """
    Return the value of a field of each message as JSON.

    None where it is not at the top level of the message, or where that cannot be read.

    Args:
        name: The name of the field.
        offsets: Where each message starts in *data*, and where the last ends (32 bits).
        data: The bytes of all messages.

    """

def tail_hash(message: BufferLike, /) -> int:
    """Return the hash that a group's tail records have of a message: of its length and start."""

def split_payloads(offsets: BufferLike, data: BufferLike, /) -> list[bytes]:
    """
    Return the bytes of each message.

    Args:
        offsets: Where each message starts in *data*, and where the last ends (32 bits).
        data: The bytes of all messages.

    Raises:
        ValueError: An offset lies outside *data*, or they decrease.

    """

def parse_json(text: str, /) -> bytes:
    """
    Return the message that a JSON text describes, such as one from :func:`to_json`.

    Numbers become 64 bits wide. Names may repeat, as method calls do.

    Raises:
        WireError: The text cannot be parsed; the error has the line and column. An integer has
            more than 64 bits; the error has its field.

    Examples:
        >>> payload = quire.types.parse_json('{"symbol":"EURUSD","price":1.1}')
        >>> print(quire.types.to_yaml(payload), end="")
        symbol: EURUSD
        price: 1.1

    """

@disjoint_base
class VanillaQueue(_Queue):
    """An open Vanilla Chronicle. See :class:`quire.vanilla.VanillaQueue`."""

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        clock: ManualClock | Callable[[], int] | None = None,
        roll_cycle: str | None = None,
        cycle_format: str | None = None,
        cycle_length_ms: int | None = None,
        cycle_time_zone: str | None = None,
        entries_per_cycle: int | None = None,
        tid_bits: int | None = None,
        index_block_bytes: int | None = None,
        data_block_bytes: int | None = None,
        synchronous: bool = False,
        consumption: str = "topic",
        linger_ms: int = 10_000,
        file_mode: int = 0o600,
        allow_network: bool = False,
    ) -> Self: ...
    @property
    def consumption(self) -> Literal["topic", "queue"]:
        """The receivers of a message: every reader of a ``topic``, one consumer of a ``queue``."""

    @property
    def cycle_format(self) -> str:
        """The pattern of the cycles' directories."""

    @property
    def cycle_length_ms(self) -> int:
        """The length of a cycle, in milliseconds."""

    @property
    def entries_per_cycle(self) -> int:
        """
        The most messages that a cycle can number, a power of two.

            cycle, sequence = divmod(index, queue.entries_per_cycle)
        """

    @property
    def entry_count(self) -> int:
        """The number of messages."""

    def count_excerpts(self, from_index: int, to_index: int) -> int:
        """Count the messages from the lower index (inclusive) to the higher one (exclusive)."""

    @property
    def cycles(self) -> list[int]:
        """The cycles that have a directory, in ascending order."""

    @property
    def current_cycle(self) -> int:
        """The cycle that a message is written to now."""

    def cycle_at(self, time_ms: int) -> int:
        """
        Return the cycle that contains a time in epoch milliseconds.

        Raises:
            IndexOutOfRangeError: The time lies before the first possible cycle or after the last.

        """

    def cycle_start_ms(self, cycle: int) -> int:
        """Return when a cycle starts, in epoch milliseconds."""

    def directory_for_cycle(self, cycle: int) -> str:
        """
        Return the directory of a cycle, which need not exist.

        Raises:
            IndexOutOfRangeError: *cycle* is negative or above the last possible cycle.

        """

    def _explain(self, index: int, /) -> tuple[str, list[_Part]] | None:
        """Return the file of a message and the parts of its bytes; None if there is none."""

    def _named_positions(self) -> list[tuple[str, int | None]]:
        """Return named tailers with the least index each still needs; None: all messages."""

    def _end_of_cycle(self, cycle: int) -> int:
        """Return the sequence after the last message of a cycle; 0 if it has none."""

    def _verify(self) -> _Report:
        """Check every cycle, as ``verify_journal`` does a journal."""

    def _snapshot(self) -> _Snapshot:
        """Return the files and lengths of a consistent copy of the queue."""

    def _rebuild_index(self) -> list[tuple[int, int, int, int, bool]]:
        """Return cycle, messages, recovered and dropped entries, and whether indexes changed."""

@disjoint_base
class VanillaAppender(_Handle):
    """
    Writes messages at the end of a Vanilla Chronicle. Calls from several threads are serialised.

    See :class:`quire.vanilla.VanillaAppender`.
    """

    def __new__(cls, queue: VanillaQueue, thread_id: int | None = None) -> Self: ...
    def write_bytes(self, payload: BufferLike, /) -> int:
        """
        Append a message, which may be empty; its index.

        Raises:
            MessageTooLargeError: The message does not fit a data file; nothing was written.

        """

    def write_text(self, text: str, /) -> int:
        """Append a message that is a text, as Java's ``append`` stores it."""

    def write_many(self, payloads: Iterable[BufferLike], /) -> int | None:
        """Append a message for each payload; the last index, or None without a payload."""

    def _write_column(
        self,
        offsets: BufferLike,
        data: BufferLike,
        *,
        count: int,
        start: int,
        wide: bool,
    ) -> int | None:
        """Append the elements of a column of Arrow."""

    def writing_excerpt(
        self,
        *,
        synchronous: bool | None = None,
        claimable: bool | None = None,
        capacity: int | None = None,
    ) -> ExcerptWriter:
        """
        Start a message that is written field by field; a ``with`` block finishes it.

            with appender.writing_excerpt() as excerpt:
                excerpt.write_int32(7)
                excerpt.write_utf("EURUSD")

        Args:
            synchronous: Finish when the message is on the medium.
            claimable: Begin with a claim word, for :meth:`VanillaTailer.claim`. The default is
                that of the queue's ``consumption``.
            capacity: Start another data file unless this many bytes fit the present one. An
                excerpt may be longer.

        Raises:
            ValueError: ``claimable=False`` in a queue with ``consumption="queue"``.

        """

    @property
    def last_index_appended(self) -> int | None:
        """The index of the last message that this appender wrote; None before the first."""

    def sync(self) -> None:
        """
        Wait until all messages of this appender are on the medium.

        Raises:
            OSError: The messages may not be durable. All later calls fail too, until the appender
                is closed.

        """

@final
class ExcerptWriter(_Context):
    """
    A message that is being written, from :meth:`quire.vanilla.VanillaAppender.writing_excerpt`.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.appender() as appender:
        ...     with appender.writing_excerpt() as excerpt:
        ...         excerpt.write_int32(7)
        ...         excerpt.write_utf("EURUSD")
        ...     message = book.tailer().read()
        ...     message.read_int32(), message.read_utf()
        (7, 'EURUSD')

    """

    @property
    def index(self) -> int | None:
        """The index of the message; None until it is finished."""

    @property
    def position(self) -> int:
        """The number of bytes written, the claim word included."""

    def align(self, width: int = 8, /) -> int:
        """
        Write zeros up to where a word may lie that others swap; the offset of that word.

        The offset is a multiple of *width*, and the message is placed so that the word is aligned
        in its file.

        Args:
            width: The bytes of the word, 4 or 8.

        """

    def write_bytes(self, data: BufferLike, /) -> None:
        """Write bytes as they are."""

    def write_int8(self, value: int, /) -> None:
        """Write a signed number of 8 bits."""

    def write_int16(self, value: int, /) -> None:
        """Write a signed number of 16 bits."""

    def write_int24(self, value: int, /) -> None:
        """Write a signed number of 24 bits."""

    def write_int32(self, value: int, /) -> None:
        """Write a signed number of 32 bits."""

    def write_int48(self, value: int, /) -> None:
        """Write a signed number of 48 bits."""

    def write_int64(self, value: int, /) -> None:
        """Write a signed number of 64 bits."""

    def write_float32(self, value: float, /) -> None:
        """Write a floating-point number of 32 bits."""

    def write_float64(self, value: float, /) -> None:
        """Write a floating-point number of 64 bits."""

    def write_boolean(self, value: bool, /) -> None:
        """Write a boolean as one byte: ``Y`` or 0."""

    def write_char(self, value: str, /) -> None:
        """Write a character that is one UTF-16 unit."""

    def write_stop_bit(self, value: int, /) -> None:
        """Write a number in as few bytes as it needs, 7 bits in each."""

    def write_compact_int(self, value: int, /) -> None:
        """Write a number of 32 bits: in two bytes if it fits."""

    def write_compact_long(self, value: int, /) -> None:
        """Write a number of 64 bits: in four bytes if it fits."""

    def write_compact_double(self, value: float, /) -> None:
        """Write a number of 64 bits: in four bytes if a float32 is equal to it."""

    def write_utf(self, text: str | None, /) -> None:
        """Write a text, or None, after its length: Java's ``writeUTFΔ``."""

    def write_utf16_length(self, text: str, /) -> None:
        """
        Write a text after its length of 16 bits: Java's ``writeUTF``.

        Raises:
            ValueError: The text has more than 65,535 bytes.

        """

    def write_enum(self, value: Any, /) -> None:
        """Write the name of an enum's member, or a name, of Latin-1 characters."""

    def write_object(self, value: object, /) -> None:
        """
        Write a value as Java's ``writeObject`` does, with its type.

        Args:
            value: None, a bool (``Boolean`` in Java), int (``Integer``, or ``Long`` or
                ``BigInteger`` if it does not fit), float (``Double``), Decimal (``BigDecimal``),
                str, datetime with a time zone (``Date``, in milliseconds), or bytes
                (``ByteBuffer``).

        Raises:
            UnsupportedError: Java would serialise a value of this type.

        """

    def append(
        self,
        value: str | float | Decimal | date | time,
        /,
        *,
        precision: int | None = None,
    ) -> None:
        """
        Write a value as text, without a length, as Java's ``append`` methods do.

        Args:
            value: A text; a bool (``true``); an int, float or Decimal, in digits without an
                exponent; a date (``2023/11/14``), a time of day (``22:13:20.123``), or a datetime
                with a time zone, in GMT (``2023/11/14T22:13:20.123``).
            precision: Round a float to this many digits after the point, at most 18, and leave out
                zeros at the end.

        Raises:
            ValueError: A datetime without a time zone, or a time with one; a Decimal that is not
                finite.

        """

    def finish(self) -> int:
        """
        Append the message; its index.

        Raises:
            ClosedError: The message was finished or rolled back.

        """

    def rollback(self) -> None:
        """Write nothing."""

@final
class VanillaExcerpt:
    """
    One message of a Vanilla Chronicle. Equal by value, hashable; a pickled one keeps its bytes.

    Its fields are read one after the other: ``read_*`` and ``parse_*`` continue from
    :attr:`position`.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.appender() as appender:
        ...     with appender.writing_excerpt() as excerpt:
        ...         excerpt.write_int32(7)
        ...         excerpt.write_utf("EURUSD")
        ...     message = book.tailer().read()
        ...     message.read_int32(), message.read_utf()
        (7, 'EURUSD')

    """

    def __new__(cls, index: int, data: bytes) -> Self: ...
    def _repr_html_(self) -> str: ...
    @property
    def index(self) -> int:
        """The 64-bit index of the message."""

    @property
    def data(self) -> bytes:
        """A copy of the payload; of a claimed message, of what follows the claim word."""

    @property
    def view(self) -> memoryview:
        """The payload in place, read-only and without a copy."""

    @property
    def position(self) -> int:
        """
        Where in the payload the next field is read.

        Raises:
            ValueError: The position lies after the end of the message.

        """

    @position.setter
    def position(self, position: int) -> None: ...
    def read_bytes(self, count: int, /) -> bytes:
        """
        Read this many bytes.

        Raises:
            WireError: The message ends before this many bytes. All reading methods raise this.

        """

    def read_int8(self) -> int:
        """Read a signed number of 8 bits."""

    def read_int16(self) -> int:
        """Read a signed number of 16 bits."""

    def read_int24(self) -> int:
        """Read a signed number of 24 bits."""

    def read_int32(self) -> int:
        """Read a signed number of 32 bits."""

    def read_int48(self) -> int:
        """Read a signed number of 48 bits."""

    def read_int64(self) -> int:
        """Read a signed number of 64 bits."""

    def read_float32(self) -> float:
        """Read a floating-point number of 32 bits."""

    def read_float64(self) -> float:
        """Read a floating-point number of 64 bits."""

    def read_boolean(self) -> bool:
        """Read a boolean: true is the byte ``Y``."""

    def read_char(self) -> str:
        """Read a character of one UTF-16 unit."""

    def read_stop_bit(self) -> int:
        """Read a number that :meth:`ExcerptWriter.write_stop_bit` wrote."""

    def read_compact_int(self) -> int:
        """Read a number that :meth:`ExcerptWriter.write_compact_int` wrote."""

    def read_compact_long(self) -> int:
        """Read a number that :meth:`ExcerptWriter.write_compact_long` wrote."""

    def read_compact_double(self) -> float:
        """Read a number that :meth:`ExcerptWriter.write_compact_double` wrote."""

    def read_utf(self) -> str | None:
        """Read a text, or None, that :meth:`ExcerptWriter.write_utf` wrote."""

    def read_utf16_length(self) -> str:
        """Read a text that :meth:`ExcerptWriter.write_utf16_length` wrote."""

    @overload
    def read_enum(self, cls: type[_T], /) -> _T | None: ...
    @overload
    def read_enum(self, cls: None = None, /) -> str | None:
        """
        Read the name of an enum's member, or None.

        Args:
            cls: The enum to return the member of; ``str`` or None: return the name.

        Raises:
            KeyError: The enum has no such member; the position stays.

        """

    def read_object(self, cls: type[Any] | None = None, /) -> Any:
        """
        Read a value as Java's ``writeObject`` or :meth:`ExcerptWriter.write_object` stored it.

        Args:
            cls: How to return an object of a class that is not known: the member of an enum, or for
                ``str`` the text of the object.

        Raises:
            UnsupportedError: An object that Java serialised, or of a class that is not known; the
                position stays.
            KeyError: The enum has no such member; the position stays.
            WireError: No object begins at the position.

        """

    def parse_int(self) -> int:
        """Read a whole number in digits, and the one character after it."""

    def parse_float(self) -> float:
        """Read a number in digits, and the one character after it."""

    def parse_decimal(self) -> Decimal:
        """Read a number in digits exactly, and the one character after it."""

    def parse_text(self, stop: str, /) -> str:
        """
        Read a text up to any of the characters of *stop*, and that one; or to the message's end.

        Raises:
            WireError: The bytes are not text.

        """

    def parse_boolean(self, stop: str, /) -> bool:
        """
        Read ``true``, ``t``, ``yes``, ``y`` or ``1``, or their opposites, as :meth:`parse_text`.

        Raises:
            WireError: The text is none of these in lower or upper case.

        """

    def parse_date(self) -> date:
        """Read a date as ``2023/11/14``, and the one character after it."""

    def parse_time(self) -> time:
        """Read a time of day as ``22:13:20.123``, and the one character after it."""

    def parse_datetime(self) -> datetime:
        """Read a datetime of GMT as ``2023/11/14T22:13:20.123``, and the character after it."""

    def compare_and_swap_int32(self, offset: int, expected: int, new: int, /) -> bool:
        """
        Store *new* at *offset* of the message if *expected* is stored there; return whether it was.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            ValueError: *offset* is not that of an aligned word of the message.

        """

    def compare_and_swap_int64(self, offset: int, expected: int, new: int, /) -> bool:
        """
        Store 64 bits at *offset* if *expected* is stored there; return whether it was.

        The word has to lie at a multiple of 8 in its file; messages start at multiples of 4, unless
        :meth:`ExcerptWriter.align` placed the word.

        Raises:
            ValueError: *offset* is not that of an aligned word of the message.

        """

    def try_lock(self, offset: int, owner: int | None = None, /) -> bool:
        """
        Take the lock word at *offset*, as Java's ``tryLockInt``; return whether it succeeded.

        An owner may take it up to 255 times, and gives it back as often.

        Args:
            offset: Where the word is: 32 bits that are 0 while the lock is free.
            owner: 24 bits, not 0; None: the calling thread's native id.

        """

    def unlock(self, offset: int, owner: int | None = None, /) -> None:
        """
        Give back a lock of :meth:`try_lock`.

        Raises:
            ValueError: The owner does not hold the lock.

        """

    def write_bytes_at(self, offset: int, data: BufferLike, /) -> None:
        """
        Store bytes in the message in place, at *offset*.

        Nothing prevents others from reading or writing there: take a lock of the message first, as
        :meth:`try_lock` does, and do not read by :attr:`data`, which is a copy made at the first
        access. An aligned word of 4 or 8 bytes is stored at once, as by all these methods.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            ValueError: The bytes do not lie within the message.

        """

    def write_int8_at(self, offset: int, value: int, /) -> None:
        """Store a signed number of 8 bits in place; see :meth:`write_bytes_at`."""

    def write_int16_at(self, offset: int, value: int, /) -> None:
        """Store a signed number of 16 bits in place; see :meth:`write_bytes_at`."""

    def write_int32_at(self, offset: int, value: int, /) -> None:
        """Store a signed number of 32 bits in place; see :meth:`write_bytes_at`."""

    def write_int64_at(self, offset: int, value: int, /) -> None:
        """Store a signed number of 64 bits in place; see :meth:`write_bytes_at`."""

    def write_float32_at(self, offset: int, value: float, /) -> None:
        """Store a floating-point number of 32 bits in place; see :meth:`write_bytes_at`."""

    def write_float64_at(self, offset: int, value: float, /) -> None:
        """Store a floating-point number of 64 bits in place; see :meth:`write_bytes_at`."""

@disjoint_base
class IndexedQueue(_Queue):
    """An open Indexed Chronicle. See :class:`quire.indexed.IndexedQueue`."""

    def __new__(
        cls, path: str | PathLike[str], *, read_only: bool = True, create: bool = False
    ) -> Self: ...
    @property
    def read_only(self) -> bool:
        """Always True: Indexed Chronicles are only read."""

    @property
    def entry_count(self) -> int:
        """The number of index entries; those that end a block of the data file hold no message."""

    def count_excerpts(self, from_index: int, to_index: int) -> int:
        """Count the messages from the lower index (inclusive) to the higher one (exclusive)."""

@disjoint_base
class IndexedTailer(_ChronicleTailer[VanillaExcerpt]):
    """
    Reads messages of an Indexed Chronicle. May be used from any thread; calls are serialised.

    See :class:`quire.indexed.IndexedTailer`.
    """

    def __new__(cls, queue: IndexedQueue) -> Self: ...
    @property
    def index(self) -> int:
        """The index of the next message; -1 once all were read backward."""

    def move_to_index(self, index: int, /) -> bool:
        """Go to a message, or to where the next one will be; false unless it is there."""

@disjoint_base
class VanillaTailer(_ChronicleTailer[VanillaExcerpt]):
    """
    Reads messages of a Vanilla Chronicle. May be used from any thread; calls are serialised.

    See :class:`quire.vanilla.VanillaTailer`.
    """

    def __new__(
        cls,
        queue: VanillaQueue,
        name: str | None = None,
        *,
        on_missing: str = "warn",
        shared: bool = False,
    ) -> Self: ...
    def claim(self, owner: int, /) -> VanillaExcerpt | None:
        """
        Return the next message that no consumer has, claimed for *owner*; None when there is none.

        The data of the excerpt follow the claim word. Messages claimed by others are skipped.

        Args:
            owner: 32 bits, not 0; Java's consumers use their thread id.

        Raises:
            UnsupportedError: The queue was not opened with ``consumption="queue"``.
            ReadOnlyError: The queue was opened read-only.
            ValueError: *owner* is 0.

        """

    def _watch_earlier(self, known: list[int], /) -> None:
        """
        Have what is appended to earlier cycles from now on be delivered, too.

        That is of those that ended lately, and of all after the first of *known*: indexes of the
        last messages that a reader has of some cycles, to which it lacks what follows.
        """

    @property
    def index(self) -> int:
        """The index of the next message; 0 while there is none and none was read."""

    def move_to_index(self, index: int, /) -> bool:
        """Go to *index*, or where its cycle ends if it is beyond; return whether it is there."""

    def commit(self) -> None:
        """Mark what a named tailer has delivered as done: it is not delivered again."""

    @property
    def name(self) -> str | None:
        """The name that the position is kept under; None of a tailer without one."""

    def close(self) -> None:
        """Close the tailer; messages that a named tailer has delivered count as done."""
