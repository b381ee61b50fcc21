"""The form of a log record in a queue, and its conversion to text."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

from quire._common import arguments
from quire._native import message_bytes
from quire.calls.messages import message

if TYPE_CHECKING:
    from quire.arrow.declared import TypeLike
    from quire.arrow.schema import Schema

# Formatting these later gives the text of today, and they read back as they were.
_KEPT: Final = frozenset({str, int, float, bool, type(None)})
_USUAL: Final = frozenset(logging.makeLogRecord({}).__dict__)
_USUAL_COUNT: Final = len(_USUAL)


@message(alias="quire.logging.Raised")
@dataclass(slots=True)
class Raised:
    """
    An exception in a log record.

    Attributes:
        type: The class, with its module.
        message: ``str()`` of the exception.
        traceback: The traceback as Python prints it, causes included.

    Examples:
        >>> quire.logging.Raised("ValueError", "no such side", "").type
        'ValueError'

    """

    type: str = ""
    message: str = ""
    traceback: str = ""


@message(alias="quire.logging.Record")
@dataclass(slots=True)
class Record:
    """
    A log record as it is stored in a queue: one field for each attribute.

    Attributes:
        time: When it was logged, in nanoseconds since 1970.
        level: The name of the level.
        severity: Its number: 30 for ``WARNING``.
        logger: The name of the logger.
        message: The template of the text; the whole text if an argument is neither text, a number,
            a bool nor None.
        args: The arguments: a list, or a map if the message names them.
        file: The path of the source file of the call.
        line: The line of the call.
        function: The function of the call.
        thread: The name of the thread.
        process: The pid.
        exception: The exception, for ``logger.exception`` and ``exc_info=True``.
        stack: The stack, for ``stack_info=True``.
        extra: The call's ``extra=``; values without an encoding as their ``repr()``, and characters
            beyond Latin-1 in names as escapes of Python literals, because names in messages cannot
            have them.

    Examples:
        >>> record = quire.logging.Record(level="INFO", message="%s is up", args=["gateway"])
        >>> record.text
        'gateway is up'
        >>> record.to_log_record().getMessage()
        'gateway is up'

    """

    time: int = 0
    level: str = "NOTSET"
    severity: int = 0
    logger: str = "root"
    message: str = ""
    args: Any = None
    file: str = ""
    line: int = 0
    function: str | None = None
    thread: str | None = None
    process: int | None = None
    exception: Raised | None = None
    stack: str | None = None
    extra: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The message with its arguments filled in, or beside them if they do not fit."""
        if not self.args:
            return self.message
        args: Any = self.args
        try:
            return self.message % (args if isinstance(args, dict) else tuple(args))
        except (TypeError, ValueError, KeyError):
            return f"{self.message} {self.args!r}"

    def to_log_record(self) -> logging.LogRecord:
        """
        Return the record for a formatter or handler of the standard library.

            logging.Formatter("%(asctime)s %(message)s").format(record.to_log_record())
        """
        seconds, nanos = divmod(self.time, 1_000_000_000)
        known = {
            "name": self.logger,
            "msg": self.text,
            "args": (),
            "levelname": self.level,
            "levelno": self.severity,
            "pathname": self.file,
            "filename": self.file.rpartition("/")[2],
            "lineno": self.line,
            "funcName": self.function,
            "created": self.time / 1e9,
            "msecs": nanos // 1_000_000 if seconds else 0,
            "threadName": self.thread,
            "process": self.process,
            "exc_text": self.exception and self.exception.traceback,
            "stack_info": self.stack,
        }
        return logging.makeLogRecord((self.extra or {}) | known)


def schema(extra: Mapping[str, TypeLike] | None = None) -> Schema:
    """
    Return the schema of the records of :class:`quire.logging.Handler`, for columns and Spark.

    Args:
        extra: Names and types of the values that the program passes as ``extra=``.

    Examples:
        >>> quire.logging.schema({"order": "int64"}).names[:6]
        ['time', 'level', 'severity', 'logger', 'message', 'args']

    """
    from quire.arrow.schema import Schema

    arguments.optional(arguments.instance(Mapping, "names and types"))("extra", extra)
    fields: dict[str, TypeLike] = {
        "time": "timestamp",
        "level": "category",
        "severity": "int64",
        "logger": "utf8",
        "message": "utf8",
        "args": ["utf8"],
        "file": "utf8",
        "line": "int64",
        "function": "utf8",
        "thread": "utf8",
        "process": "int64",
        "exception": {"type": "utf8", "message": "utf8", "traceback": "utf8"},
        "stack": "utf8",
    }
    return Schema(fields | ({"extra": dict(extra)} if extra else {}))


def record_of(record: logging.LogRecord) -> Record:
    """Return a record to write; it is formatted later if its arguments are immutable."""
    template: Any = record.msg
    args: Any = None
    if record.args or type(template) is not str:
        args = _kept(record.args)
        if args is None or type(template) is not str:
            template, args = record.getMessage(), None
    return Record(
        int(record.created * 1e9),
        record.levelname,
        record.levelno,
        record.name,
        template,
        args,
        record.pathname,
        record.lineno,
        record.funcName,
        record.threadName,
        record.process,
        _raised(record) if record.exc_info or record.exc_text else None,
        record.stack_info,
        _extra(record) if len(record.__dict__) > _USUAL_COUNT else None,
    )


def _kept(args: Any) -> dict[str, Any] | list[Any] | None:  # noqa: ANN401 - of a log record
    """Return arguments that can be formatted later with the same text; None for others."""
    found: dict[str, Any] | list[Any]
    if type(args) is tuple:
        found = values = list(cast("Iterable[Any]", args))
    elif isinstance(args, Mapping):
        found = dict(cast("Mapping[str, Any]", args))
        values = list(found.values())
    else:
        return None
    return found if _KEPT.issuperset(map(type, values)) else None


def plain(record: logging.LogRecord) -> Record:
    """Return an encodable form of a record with, for example, a lone surrogate or a huge number."""
    made = record_of(record)
    made.severity = made.severity or 0  # records made by hand may lack what loggers set
    made.message, made.args = _printable(made.text), None
    made.level, made.logger = _printable(made.level), _printable(made.logger or "root")
    made.file = _printable(made.file)
    made.thread = made.thread and _printable(made.thread)
    made.stack = made.stack and _printable(made.stack)
    if found := made.exception:
        made.exception = Raised(
            _printable(found.type), _printable(found.message), _printable(found.traceback)
        )
    if made.extra:
        made.extra = {name: _encodable(value) for name, value in made.extra.items()}
    return made


def _raised(record: logging.LogRecord) -> Raised:
    kind, value, trace = record.exc_info or (None, None, None)
    if kind is None:
        return Raised(traceback=record.exc_text or "")
    text = record.exc_text or _traceback(kind, value, trace)
    try:
        words = str(value)
    except Exception:  # noqa: BLE001 - of a foreign class
        words = f"<unprintable {kind.__name__}>"
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return Raised(f"{module}{kind.__qualname__}", words, text)


def _traceback(
    kind: type[BaseException], value: BaseException | None, trace: TracebackType | None
) -> str:
    return "".join(traceback.format_exception(kind, value, trace)).rstrip("\n")


def _extra(record: logging.LogRecord) -> dict[str, Any] | None:
    """Return the attributes that the call added to the record; formatters add the last three."""
    known = _USUAL | {"message", "asctime", "taskName"}
    found = {name: value for name, value in record.__dict__.items() if name not in known}
    return {_name(name): value for name, value in found.items()} or None


def _name(name: object) -> str:
    """Return a name that a message can have: other characters become escapes."""
    text = str(name)  # ``extra=`` takes a mapping with any keys
    return text if text.isascii() else text.encode("latin-1", "backslashreplace").decode("latin-1")


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _encodable(value: Any) -> Any:  # noqa: ANN401 - what a program passed
    """Return a value, as text if it has no encoding."""
    try:
        message_bytes(Record(extra={"": value}))
    except Exception:  # noqa: BLE001 - of a foreign class
        return _printable(value if isinstance(value, str) else _shown(value))
    return value


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - of a foreign class
        return f"<unprintable {type(value).__name__}>"
