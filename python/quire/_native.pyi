from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar, final, overload

from typing_extensions import Buffer as BufferLike
from typing_extensions import disjoint_base

__all__ = [
    "BUILD_PROFILE",
    "VERSION",
    "Appender",
    "Buffer",
    "Call",
    "Chain",
    "Codec",
    "Dump",
    "Encoder",
    "Excerpt",
    "Kind",
    "ManualClock",
    "MessageHistory",
    "Method",
    "MethodReader",
    "MethodWriter",
    "Payloads",
    "Plan",
    "Queue",
    "RawIn",
    "RawOut",
    "ReadDocument",
    "RollCycle",
    "Seen",
    "Tailer",
    "WireIn",
    "WireOut",
    "WriteDocument",
    "after_fork_in_child",
    "after_fork_in_parent",
    "before_fork",
    "entry_bytes",
    "kind_parts",
    "parse_json",
    "parse_yaml",
    "to_json",
    "to_yaml",
]

_T = TypeVar("_T")

VERSION: Final[str]
BUILD_PROFILE: Final[str]

# Whatever has an encoding: scalars of numpy and objects of registered classes too.
Value: TypeAlias = Any
Direction: TypeAlias = Literal["forward", "backward", "none"]

# Columns: a field is its name, whether it may be null, its type, two numbers, and what is inside.
PlanField: TypeAlias = tuple[str, bool, str, tuple[int, int], Sequence[PlanField]]
PlanMethod: TypeAlias = tuple[str, int | None, str, Sequence[PlanField]]
# Length, nulls, buffers, the columns inside, the values of a dictionary.
Column: TypeAlias = tuple[int, int, list[Buffer | None], list[Column], Column | None]
# Rows, indexes, columns, history, errors.
Table: TypeAlias = tuple[int, Buffer, list[Column], Column | None, Column | None]
# Sorts of values, what is under each name, what is in lists.
Sample: TypeAlias = tuple[list[str], list[tuple[str, Sample]], Sample | None]

@final
class Plan:
    """What is decoded into which columns; made by :class:`quire.Schema`."""

    def __new__(
        cls,
        shape: Literal["fields", "value", "calls"],
        parts: Sequence[PlanField | PlanMethod],
        *,
        history: bool = False,
        types: Sequence[str] = ...,
    ) -> Plan: ...

# Length, the first value's place, whether it has a zone, buffers, the columns inside, the values of
# a dictionary.
Borrowed: TypeAlias = tuple[
    int, int, bool, Sequence[BufferLike | None], Sequence[Borrowed], Borrowed | None
]

@final
class Encoder:
    """Makes messages of rows; see :class:`quire.arrow.encoder.Encoder`."""

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
        """Return the messages' offsets, of 64 bits each, and their bytes."""

@final
class Seen:
    """What the messages of a queue look like; see :meth:`quire.Schema.infer`."""

    def __new__(cls) -> Seen: ...
    def look(self, tailer: Tailer, count: int, /) -> int:
        """Look at the next *count* messages; how many there were."""

    def found(self) -> Sample: ...

def kind_parts(kind: Kind, /) -> tuple[str, list[Kind], Codec | None]:
    """Return what a declared type is, the types inside, and the class's codec."""

def before_fork() -> None:
    """Wait for what a child would find half done; called by ``os.register_at_fork``."""

def after_fork_in_parent() -> None:
    """Let the other threads go on; called by ``os.register_at_fork``."""

def after_fork_in_child() -> None:
    """Mark every handle of this process as forked; called by ``os.register_at_fork``."""

def entry_bytes(name: str, value: object, /) -> bytes:
    """Return a named value as :meth:`WriteDocument.write` appends it."""

@final
class Buffer:
    """Bytes owned by the kernel, readable through the buffer protocol (read-only)."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Dump:
    """
    The documents of one file, ``metadata.cq4t`` or ``*.cq4``, as text in pieces (UTF-8).

    It needs no queue around the file, and nothing but the file's own bytes.

    Raises:
        NotAQueueError: The file has another name.
        CorruptError: It does not begin as its name says. Later damage is told in the dump.

    """

    def __new__(cls, path: str | PathLike[str]) -> Dump: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

@final
class Excerpt:
    """
    One message: its index and its bytes. Equal by value, hashable, picklable.

    Attributes:
        index: The 64-bit message index.
        data: The payload.

    """

    def __new__(cls, index: int, data: bytes, fieldless: bool = False) -> Excerpt: ...
    @property
    def index(self) -> int: ...
    @property
    def data(self) -> bytes: ...
    def to_yaml(self) -> str:
        """Return the message as YAML; see :func:`quire.to_yaml`."""

    def to_json(self) -> str:
        """Return the message as JSON; see :func:`quire.to_json`."""

    def to_text(self) -> str:
        """
        Return the message's text, as :meth:`Tailer.read_text`.

        Raises:
            WireError: It is not a text value.

        """

    def to_message(self, cls: type[_T] | None = None, /) -> _T | Any:
        """
        Return the message as an object, as :meth:`Tailer.read_message`.

        Args:
            cls: The class of :func:`quire.message` to make of it. None: the registered one that
                the message names.

        Raises:
            WireError: It is something else.

        """

    def to_dict(self) -> dict[Any, Any]:
        """
        Return the message's named values, those of unregistered types as :class:`quire.Typed`.

        Raises:
            WireError: It is no map, or no well-formed BinaryWire.

        """

    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Excerpt], tuple[int, bytes, bool]]: ...

@final
class Kind:
    """
    A declared type: how its values are written, and what is made of what is read.

    Made of annotations by :func:`quire.types.kind_of`.
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

@final
class Codec:
    """
    How the objects of one class are written and read, made by :func:`quire.message`.

    Args:
        cls: The class.
        alias: Its name in messages.
        resolve: Gives, when they are first needed, the fields (name, attribute, kind, 0 for no
            default, 1 for a value or 2 for what makes one, and that), and whether there is a
            ``__post_init__``.
        build: ``set`` attributes, ``force`` them or its ``dict`` past the class's own
            ``__setattr__``, or ``call`` the class by names, or with ``args`` in order.
        members: Of an enum: its kind.
        keep_unknown: Keep fields that the class does not have.
        bytes_layout: Fields one behind the other.

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
        """The kind of an enum."""

    @property
    def bytes_layout(self) -> bool: ...
    @property
    def fields(self) -> list[tuple[str, str, Kind]]:
        """Name in messages, attribute and kind of each field, in their order."""

    def register(self) -> type | None:
        """Have the class stand behind its alias, unless another one does: return that."""

    def check(self) -> None:
        """Look the fields up at once."""

@final
class RollCycle:
    """
    How a queue is cut into files: length, name pattern, index layout. Equal by name.

    Args:
        name: One of Chronicle's names, such as ``FAST_DAILY``; case does not matter.

    Raises:
        ValueError: No roll cycle has this name.

    """

    def __new__(cls, name: str) -> RollCycle: ...
    @staticmethod
    def all() -> list[RollCycle]:
        """Every roll cycle of the table, in its order."""

    @property
    def name(self) -> str: ...
    @property
    def pattern(self) -> str:
        """File-name pattern, in Java's date-format letters."""

    @property
    def length_ms(self) -> int: ...
    @property
    def index_count(self) -> int:
        """Slots in one index array."""

    @property
    def index_spacing(self) -> int:
        """One message in so many is indexed."""

    @property
    def max_messages(self) -> int:
        """How many messages one cycle can number."""

    @property
    def default_epoch_ms(self) -> int: ...
    def to_index(self, cycle: int, sequence: int) -> int:
        """
        Compose a message index.

        Raises:
            IndexOutOfRangeError: The cycle is not in 0..2**31-1 or the sequence does not fit.

        """

    def to_cycle(self, index: int) -> int: ...
    def to_sequence(self, index: int) -> int: ...
    def cycle_at(self, time_ms: int, epoch_ms: int | None = None) -> int:
        """Return the cycle that *time_ms* (epoch milliseconds, UTC) falls into."""

    def file_name(self, cycle: int, epoch_ms: int | None = None) -> str:
        """Return the name of the cycle's file, ``.cq4`` included."""

    def cycle_of_file(self, name: str, epoch_ms: int | None = None) -> int:
        """
        Return the cycle whose file has this name.

        Raises:
            ValueError: The name does not follow the pattern.

        """

    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[RollCycle], tuple[str]]: ...

@final
class ManualClock:
    """
    A clock that moves only when told to, for tests, replays and event-time recording.

    Args:
        now_ms: Epoch milliseconds to start from.

    """

    def __new__(cls, now_ms: int = 0) -> ManualClock: ...
    now_ms: int
    def advance(self, ms: int) -> int:
        """Move by *ms* milliseconds (negative: back) and return the new time."""

    def __call__(self) -> int:
        """Return the time in epoch milliseconds."""

    def __reduce__(self) -> tuple[type[ManualClock], tuple[int]]: ...

@final
class MessageHistory:
    """
    Where a message comes from. Equal by value, hashable, picklable.

    A method writer puts it in front of its calls, if its queue has a source id or it was told to.
    It grows from queue to queue: while a method reader has a handler at work, what the handler's
    thread writes through such a writer tells the sources of the message being read and that message
    itself, and its timings, the time it was read and the time of writing.

    Args:
        sources: The source id of each queue the message went through, and its index there; the
            nearest last.
        timings: Nanoseconds of the machine's monotonic clock, as of Java's ``System.nanoTime``:
            written, read, written, and so on.

    """

    def __new__(
        cls, sources: Sequence[tuple[int, int]] = ..., timings: Sequence[int] = ...
    ) -> MessageHistory: ...
    @staticmethod
    def current() -> MessageHistory:
        """
        Return what a message written by this thread would tell, but for the time of writing.

        Inside a handler it ends with the message being read and the time that was; outside it is
        empty.
        """

    @property
    def sources(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def timings(self) -> tuple[int, ...]: ...
    def __hash__(self) -> int: ...
    def __reduce__(
        self,
    ) -> tuple[type[MessageHistory], tuple[tuple[tuple[int, int], ...], tuple[int, ...]]]: ...

@disjoint_base
class Queue:
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
    ) -> Self: ...
    @property
    def path(self) -> str: ...
    @property
    def roll_cycle(self) -> RollCycle: ...
    @property
    def epoch_ms(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def wire_type(self) -> str: ...
    @property
    def source_id(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def first_index(self) -> int | None:
        """
        Index of the oldest message that can be read; None while the queue is empty.

        A damaged file is passed over and logged.
        """

    @property
    def last_index(self) -> int | None:
        """Index of the newest message; None while the queue is empty. May lag, never leads."""

    @property
    def entry_count(self) -> int:
        """
        How many messages the queue holds; walks one file end per cycle.

        A damaged file counts nothing and is logged; :meth:`end_of_cycle` raises there.
        """

    def count_excerpts(self, from_index: int, to_index: int) -> int:
        """
        Count the messages from the lower index (included) to the higher one (excluded).

        As in Java, the order of the two does not matter: the count is never negative.

        Raises:
            IndexOutOfRangeError: An index lies in a cycle that has no file, or beyond its end.

        """

    @property
    def cycles(self) -> list[int]:
        """The cycles that have a file, ascending."""

    @property
    def current_cycle(self) -> int:
        """
        The cycle that the queue's clock is in, as Java's ``queue.cycle()``.

        The next message goes there, or to the newest cycle that has a file if that is later.
        """

    @property
    def current_file(self) -> str:
        """The path of the file of :attr:`current_cycle`; it need not be there yet."""

    def file_for_cycle(self, cycle: int) -> str:
        """Return the path of the cycle's file, whether or not it exists."""

    def refresh(self) -> None:
        """List the directory again, as after files were removed by hand."""

    def dump(self) -> str:
        """Return every document of every file as text, as Java's ``DumpMain`` shows them."""

    def table_value(self, key: str) -> int | None:
        """Return the value of a key of the table store, or None; case does not matter."""

    def table_entries(self) -> list[tuple[str, int]]:
        """Return every key of the table store and its value, in the order of their making."""

    def named_tailers(self) -> list[tuple[str, int]]:
        """Return the name of each named tailer, and the index that it reads next."""

    def lock_holder(self, key: str) -> tuple[int, bool] | None:
        """Return the pid that holds the lock of this key, and whether it lives; None: nobody."""

    def end_of_cycle(self, cycle: int) -> tuple[int, int, bool] | None:
        """
        Return where the documents of a cycle's file end.

        Returns:
            The position, how many messages there are, and whether an end-of-file marker closes it;
            None when the file is missing or being made.

        Raises:
            CorruptError: It is damaged, or not ready although a later one has messages.

        """

    def _write_position(self, cycle: int) -> int | None:
        """
        Return what a cycle's file says the position of its last message is.

        It lies behind the end (:meth:`end_of_cycle`) where messages in between were lost.

        Returns:
            0 before the first message; None when the file is missing or not ready.

        """

    def close(self) -> None:
        """Close the queue and all its handles. Safe to repeat."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@disjoint_base
class Appender:
    """
    Writes messages at the end of a queue. May be used from any thread; calls are serialised.

    Every write returns the index of the (last) message written.

    Raises:
        ReadOnlyError: The queue was opened read-only.
        LockTimeoutError: A living process kept the write lock, or a lock on the file.
        AppendLockedError: A replication sink keeps others from writing.
        DocumentOpenError: This thread has a document open.
        LockLostError: The lock was taken away meanwhile; nothing was published.
        MessageTooLargeError: The message does not fit; nothing was written.
        CycleFullError: The cycle cannot number another message; nothing was written.
        OSError: The disk is full, or another failure of the system; nothing was published.

    """

    def __new__(cls, queue: Queue) -> Self: ...
    def write_bytes(self, payload: BufferLike, /) -> int:
        """
        Append *payload*, any contiguous buffer of at least one byte.

        Raises:
            ValueError: The payload is empty.

        """

    def write_text(self, text: str, /) -> int:
        """Append a string as a BinaryWire text value, as Java's ``writeText``."""

    def write_map(self, values: Mapping[str, Value], /) -> int:
        """Append a mapping, as Java's ``writeMap``."""

    def write_message(self, message: Any, /, *, typed: bool = False) -> int:
        """
        Append an object of a class of :func:`quire.message`, and return its index.

        Args:
            message: The object; its fields stand in the message by name.
            typed: Put the name of its class in front, so that a reader need not know it.

        Raises:
            TypeError: The class is not registered.
            WireError: A field's value does not fit its type; nothing was written.

        """

    def write_many(self, payloads: Iterable[BufferLike], /) -> int | None:
        """Append each payload under one lock; None when there was none."""

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
            count: How many elements.
            start: The first element's place in *offsets*.
            wide: Offsets are 64 bits wide.
            text: Write each as a text value instead of raw bytes.
            note: A metadata document in front of raw bytes, with nobody's message between.

        """

    def writing_document(self, *, metadata: bool = False) -> WriteDocument:
        """
        Open a document: committed on a clean exit, rolled back on an exception.

        The write lock is held until it closes: another append from the same thread raises,
        other threads and processes wait.
        """

    def _without_waiting(self, write: Callable[[], _T], /, *, waited_ms: int | None = None) -> _T:
        """Call *write*, whose first append fails rather than wait for the write lock."""

    @property
    def _is_locked(self) -> bool: ...
    @property
    def _lock_timeout_s(self) -> float: ...
    @property
    def _has_field_names(self) -> bool:
        """Whether the messages of the queue hold the names of fields: not as FIELDLESS_BINARY."""

    @property
    def last_index_appended(self) -> int | None:
        """Index of the last message this appender wrote; None before the first."""

    @property
    def path(self) -> str:
        """The directory of its queue."""

    @property
    def closed(self) -> bool: ...
    def normalise_eofs(self) -> None:
        """Write the end-of-file marker into every older cycle that lacks one."""

    def sync(self) -> None:
        """
        Return when every message that is in the queue now is on the medium.

        Raises:
            OSError: It may not be there. All later calls fail too, until the queue is closed:
                the system forgets what it could not write.

        """

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Method:
    """
    A method of an interface, as messages hold it.

    Args:
        name: Its name, of Latin-1 characters.
        parameters: Of each its name, its kind, and a tuple of its default or of nothing.
        id: The number that stands for the name.
        next: The methods of what a call returns, by their names.

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
    def id(self) -> int | None: ...
    @property
    def parameters(self) -> list[tuple[str, Kind]]: ...
    @property
    def next(self) -> dict[str, Method] | None: ...
    def event_bytes(self, *given: object, **named: object) -> bytes:
        """Return a call as a method writer appends it."""

@final
class MethodWriter:
    """The native half of :meth:`quire.Appender.method_writer`: where calls go."""

    def __new__(
        cls,
        appender: Appender,
        *,
        record_history: bool | None,
        history_form: str,
        metadata: bool = False,
        document: WriteDocument | None = None,
        filter: Callable[[str, Any], object] | None = None,
    ) -> MethodWriter: ...
    def method(self, method: Method) -> Callable[..., Chain | None]:
        """Return what appends a call of this method."""

@final
class Call:
    """A method of a writer, bound to it."""

    def call(self, first: object = ..., /, *rest: object, **named: object) -> Chain | None: ...

@final
class Chain:
    """What a call returned that the next one of the same document is made on."""

    @property
    def __quire_methods__(self) -> dict[str, Method]: ...
    def __getattr__(self, name: str) -> Callable[..., Chain | None]: ...
    def __dir__(self) -> list[str]: ...

@disjoint_base
class MethodReader:
    """The native half of :class:`quire.calls.method_reader.MethodReader`."""

    def __new__(
        cls,
        tailer: Tailer,
        handlers: Sequence[tuple[Method, Callable[..., object]]],
        *,
        metadata: Sequence[tuple[Method, Callable[..., object]]] | None,
        default: Callable[[str | int, Any], object] | None,
        filter: Callable[[str, Any], object] | None,
        on_failure: Callable[[int, bytes, Exception], object] | None,
        scanning: bool,
    ) -> Self: ...
    @property
    def tailer(self) -> Tailer: ...
    @property
    def closed(self) -> bool: ...
    def read_one(self) -> bool:
        """
        Read one message and call its handlers.

        Returns:
            False when nothing is there yet. True otherwise, also when nobody handles the message,
            unless the reader scans.

        Raises:
            ClosedError: The reader or its tailer was closed.
            WireError: The message does not decode; the tailer stays in front of it.
            Exception: What a handler raised; the tailer stays in front of the message.

        """

    def read_many(self, count: int, /) -> int:
        """As :meth:`read_one`, at most *count* times; how often there was something."""

    def close(self) -> None: ...

@final
class WriteDocument:
    """One document being written, from :meth:`Appender.writing_document`."""

    @property
    def index(self) -> int:
        """
        The index the message has, or will have.

        Raises:
            IndexNotAvailableError: The document is double-buffered and still open.

        """

    @property
    def is_metadata(self) -> bool: ...
    def write(self, name: str, value: Value, /) -> None:
        """
        Append a named value, as an entry of Java's ``writeMap``.

        Raises:
            WireError: The value has no encoding.

        """

    def write_bytes(self, data: BufferLike, /) -> None:
        """Append raw bytes to the document."""

    def write_message(self, message: Any, /, *, typed: bool = False) -> None:
        """Append an object; see :meth:`Appender.write_message`."""

    @property
    def wire(self) -> WireOut:
        """Writes self-describing values, one behind the other."""

    @property
    def raw(self) -> RawOut:
        """Writes numbers and texts without codes."""

    def reserve(self, length: int, /) -> memoryview:
        """
        Append zeros, and return them as memory to write into until the document closes.

        Args:
            length: Bytes.

        Raises:
            MessageTooLargeError: A message cannot be that long.

        """

    def rollback_on_close(self) -> None:
        """Drop the document when it closes."""

    def close(self) -> None:
        """Publish the document, or drop it if asked to."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class WireOut:
    """Appends self-describing values to a document, from :attr:`WriteDocument.wire`."""

    def write(self, name: str, value: Any, /, type: Any = None) -> None:
        """
        Append a field.

        Args:
            name: Its name, in Latin-1.
            value: Its value.
            type: The annotation that says how to write it; None: by the value's own type, as
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
        """Append the name of the type of the value that follows."""

    def write_comment(self, text: str, /) -> None:
        """Append a comment: readers of fields step over it."""

@final
class RawOut:
    """
    Appends numbers, little-endian, and texts without codes, from :attr:`WriteDocument.raw`.

    Raises:
        WireError: The value does not fit.

    """

    def write_bool(self, value: bool, /) -> None: ...
    def write_int8(self, value: int, /) -> None: ...
    def write_int16(self, value: int, /) -> None: ...
    def write_int32(self, value: int, /) -> None: ...
    def write_int64(self, value: int, /) -> None: ...
    def write_uint8(self, value: int, /) -> None: ...
    def write_uint16(self, value: int, /) -> None: ...
    def write_uint32(self, value: int, /) -> None: ...
    def write_float32(self, value: float, /) -> None: ...
    def write_float64(self, value: float, /) -> None: ...
    def write_stop_bit(self, value: int, /) -> None:
        """Append an integer of as many bytes as it needs."""

    def write_utf8(self, text: str | None, /) -> None:
        """Append a text behind its length in bytes as a stop-bit integer; None: a length of -1."""

    def write_bytes(self, data: BufferLike, /) -> None:
        """Append bytes as they are."""

@final
class WireIn:
    """Reads the self-describing values of a document, from :attr:`ReadDocument.wire`."""

    def read(self, name: str, /, type: Any = None) -> Any:
        """
        Return the value of a field, wherever it stands.

        Args:
            name: Its name.
            type: The annotation of what to make of it; None: what it is.

        Raises:
            WireError: There is no such field, or its value does not fit the type.

        """

    def read_value(self, type: Any = None) -> Any:
        """Return the next value; see :meth:`read`."""

    def read_name(self) -> str | None:
        """Return the next name; None at the end."""

    def skip_value(self) -> None:
        """Step over the next value."""

    @property
    def has_more(self) -> bool: ...

@final
class RawIn:
    """
    Reads numbers and texts without codes, from :attr:`ReadDocument.raw`.

    Raises:
        WireError: The document ends early.

    """

    def read_bool(self) -> bool: ...
    def read_int8(self) -> int: ...
    def read_int16(self) -> int: ...
    def read_int32(self) -> int: ...
    def read_int64(self) -> int: ...
    def read_uint8(self) -> int: ...
    def read_uint16(self) -> int: ...
    def read_uint32(self) -> int: ...
    def read_float32(self) -> float: ...
    def read_float64(self) -> float: ...
    def read_stop_bit(self) -> int: ...
    def read_utf8(self) -> str | None: ...
    def read_bytes(self, length: int, /) -> bytes: ...
    @property
    def remaining(self) -> int:
        """Bytes left."""

    @property
    def position(self) -> int:
        """The offset of the next byte in the document; it can be set."""

    @position.setter
    def position(self, value: int, /) -> None: ...

@final
class Payloads:
    """Iterates over payloads alone; ends at "nothing yet"."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

@disjoint_base
class Tailer:
    """
    Reads messages. May be used from any thread; calls are serialised.

    A named tailer resumes where it stopped and delivers at least once: a message counts as
    finished when the next one is asked for, on :meth:`commit`, and when the tailer closes
    without an exception.

    A read that scans many messages looks for signals every so often, and holds nothing then: a
    handler may use, move or close the tailer. If it raises, the tailer is back at the first message
    that was not delivered.

    Nothing to read means that no later message is there either: behind a file without end-of-file
    marker a read waits for the queue's ``eof_grace_s``, if need be, and goes on.
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
    def path(self) -> str:
        """The directory of its queue."""

    @property
    def name(self) -> str | None: ...
    @property
    def closed(self) -> bool: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Excerpt: ...
    def payloads(self) -> Payloads: ...
    def read(self) -> Excerpt | None:
        """Return the next message with its index, or None when nothing is there yet."""

    def read_bytes(self) -> bytes | None:
        """Return the next message's bytes, or None when nothing is there yet."""

    def spin(self, timeout_s: float | None = None) -> bool:
        """
        Wait for a message without a pause: true once there is one to read, false after the timeout.

        For a thread that has a core to itself: a look takes a few nanoseconds where a call of
        :meth:`read_bytes` that finds nothing takes tens. Other threads run meanwhile. The message
        is not read; what was received before is done. To wait without using a core, see
        :meth:`quire.Tailer.wait`.

        Args:
            timeout_s: Wait at most this many seconds; None: forever.

        Raises:
            ValueError: The timeout is negative or not a number.

        """

    def read_text(self) -> str | None:
        """
        Return the next message as text, or None when nothing is there yet.

        Raises:
            WireError: The message is not a text value; the position stays.

        """

    def read_map(self) -> dict[str, Any] | None:
        """
        Return the next message as a dict, or None when nothing is there yet.

        Raises:
            WireError: The message is not a sequence of named values; the position stays.

        """

    def read_message(self, cls: type[_T] | None = None, /) -> _T | Any | None:
        """
        Return the next message as an object; None when nothing is there yet.

        Args:
            cls: The class of :func:`quire.message` to make of it. None: the registered one that
                the message names.

        Raises:
            WireError: It is something else; the position stays.

        """

    @overload
    def read_messages(self, cls: type[_T], count: int, /) -> list[_T]: ...
    @overload
    def read_messages(self, cls: None, count: int, /) -> list[Any]:
        """
        Return at most *count* messages as objects; an empty list when nothing is there yet.

        They are finished together, when the next ones are asked for. A message that does not
        decode ends the list, and the next call raises its error.

        Args:
            cls: The class of :func:`quire.message` to make of them. None: the registered one that
                each message names.
            count: How many, at most.

        Raises:
            WireError: The first of them is something else; the position stays.

        """

    def _prepare(self) -> bool | None:
        """Look for the next message; None while the scan for it is not through."""

    def release_resources(self) -> None:
        """
        Close the files and let go of the memory that this tailer holds.

        It stays where it is, and opens them again when it is read on. Documents and batches that
        were read keep theirs. For many tailers that are seldom read.
        """

    def read_many(self, count: int, /) -> list[bytes]:
        """Return at most *count* payloads; an empty list when nothing is there yet."""

    def _read_columns(
        self, count: int, /, *, max_bytes: int | None = None
    ) -> tuple[int, Buffer, Buffer, Buffer]:
        """
        Return at most *count* messages as Arrow buffers.

        Args:
            count: How many, at most.
            max_bytes: Of so many bytes at most, unless it is a single message.

        Returns:
            How many, the indexes (uint64), the offsets (int32, one more), the payload bytes.

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
        Decode at most *count* messages into buffers; see :meth:`quire.Tailer.read_batch`.

        Args:
            plan: What is decoded into which columns.
            count: Rows from so many messages, at most.
            max_bytes: Of so many bytes at most, unless it is a single message.
            keep_misfits: Messages that do not fit become rows without values; else WireError.
            layout: For calls: ``tables``, ``union``, or the name of one method.
            end: Only messages before this index.
            payload: The messages' bytes too, for each row; not with the layout ``tables``.
            topic: The keys behind the event of this name too, as text; as the bytes.

        Returns:
            How many messages were read, those without a row too; the tables, the bytes, the keys.

        """

    def reading_document(self, *, include_metadata: bool = False) -> ReadDocument:
        """Return the next document, open; ``is_present`` is False when nothing is there yet."""

    @property
    def index(self) -> int:
        """Index of the message the next read returns, or would wait for; 0 before any."""

    @property
    def state(self) -> str:
        """Chronicle's name of the tailer's state, such as ``FOUND_IN_CYCLE``."""

    @property
    def direction(self) -> Direction: ...
    @direction.setter
    def direction(self, value: Direction, /) -> None: ...
    def _set_topics(self, routes: list[bytes] | None, /) -> None:
        """See :meth:`quire.Tailer.topics`; each key is given as :func:`entry_bytes` has it."""

    @property
    def _topic_number(self) -> int | None:
        """The place of the last message's key in :meth:`_set_topics`; None without one."""

    def commit(self) -> None:
        """Store the position of a named tailer: what was received is done."""

    def to_start(self) -> None: ...
    def to_end(self) -> None: ...
    @property
    def last_read_index(self) -> int | None:
        """Index of the message this tailer read last; None before the first."""

    @property
    def history(self) -> MessageHistory | None:
        """
        The history in the message read last; None where there is none.

        Raises:
            WireError: The message begins with a history that does not decode.

        """

    def after_last_written(self, output: Queue, /) -> None:
        """
        Go behind the message that the newest message of *output* from this queue came from.

        What follows led to nothing in *output* yet. Goes to the start when no message of *output*
        came from this queue.

        Args:
            output: A queue that a reader of this one writes, with history.

        Raises:
            ValueError: This queue has no source id, or *output* is this queue.
            IndexOutOfRangeError: The message is not there any more.

        """

    def move_to_index(self, index: int, /) -> bool:
        """
        Go to *index*; True when a message is there.

        Raises:
            IndexOutOfRangeError: No message can have this index.

        """

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class ReadDocument:
    """One document being read, from :meth:`Tailer.reading_document`."""

    @property
    def is_present(self) -> bool: ...
    @property
    def is_metadata(self) -> bool: ...
    @property
    def index(self) -> int: ...
    @property
    def bytes(self) -> memoryview:
        """
        The payload, without a copy.

        Slices keep the file mapped; the bytes of a published message never change.

        Raises:
            ClosedError: The document was closed.

        """

    def text(self) -> str: ...
    def map(self) -> dict[str, Any]: ...
    @property
    def history(self) -> MessageHistory | None:
        """The history in front of the message; None where there is none."""

    def to_yaml(self) -> str:
        """Return the document as YAML; see :func:`quire.to_yaml`."""

    def to_json(self) -> str:
        """Return the document as JSON; see :func:`quire.to_json`."""

    def to_dict(self) -> dict[Any, Any]:
        """Return the document's named values; see :meth:`Excerpt.to_dict`."""

    def message(self, cls: type[_T] | None = None, /) -> _T | Any:
        """Return the document as an object; see :meth:`Tailer.read_message`."""

    @property
    def wire(self) -> WireIn:
        """Reads self-describing values, one behind the other."""

    @property
    def raw(self) -> RawIn:
        """Reads numbers and texts without codes, on from where :attr:`wire` stands."""

    def rollback_on_close(self) -> None:
        """Read the same document again next time."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

# Messages as text.

def to_yaml(message: BufferLike, /) -> str:
    """
    Return a message as YAML, as Java's dump shows it.

    Raises:
        WireError: It is no well-formed BinaryWire.

    """

def to_json(message: BufferLike, /) -> str:
    """
    Return a message as JSON, on one line.

    Types stand around their values, as in Java's JSON wire: ``{"@Trade":{"price":1.5}}``, bytes
    as ``{"@!binary":"AQID"}``. Keys that are no strings are shown as text, floats that are no
    numbers as ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, dates and times as text.

    Raises:
        WireError: It is no well-formed BinaryWire, or has a surrogate alone.

    """

def parse_yaml(text: str, /) -> bytes:
    """
    Return the message that YAML stands for, such as that of :func:`to_yaml`.

    The names of the message and of untyped maps become event names and keys, those of typed maps
    (``!Trade {...}``) field names; plain integers 64 bits, unless ``!byte``, ``!short`` or
    ``!int`` says otherwise; plain floats 64 bits. ``true``, ``false``, numbers, ``NaN``,
    ``Infinity``, dates and times are recognised; ``null`` and ``~`` are strings, as in Java's
    dump, where no value is ``!!null ""``. Names may repeat. Anchors and aliases are refused.

    Raises:
        WireError: It cannot be read; with line and column.

    """

def parse_json(text: str, /) -> bytes:
    """
    Return the message that JSON stands for, such as that of :func:`to_json`.

    Numbers become 64 bits wide; names may repeat, as calls do.

    Raises:
        WireError: It cannot be read; with line and column.

    """
