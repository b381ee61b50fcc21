"""
Options of ``quire.open`` that the environment or a file sets, as Java's are by system properties.

``QUIRE_TIMEOUT_S=30`` sets *timeout_s*. So does ``timeout_s = 30`` in the table ``[open]`` of the
file that ``QUIRE_CONFIG`` names, or of ``quire.toml`` in the working directory. What a program
gives explicitly holds over both, and the environment over the file.

A ``quire.toml`` that was merely found may have come with data from elsewhere: it is not read where
queues lie, and sets only options that cannot weaken safety.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from typing import Final, NamedTuple, ParamSpec, TypeVar, cast

from quire._common import arguments
from quire._native import ManualClock
from quire.errors import NotAQueueError, SettingError
from quire.formats import detection
from quire.opening import options as _options

_P = ParamSpec("_P")
_R = TypeVar("_R")

PREFIX: Final = "QUIRE_"
FILE: Final = "quire.toml"
FILE_VARIABLE: Final = "QUIRE_CONFIG"
_TABLE: Final = "open"
_LONGEST: Final = 2**16

_YES: Final = {"1", "true", "yes", "on"}
_NO: Final = {"", "0", "false", "no", "off"}
_OCTAL: Final = 8


class Setting(NamedTuple):
    """The value of an option, and where it was set."""

    value: object
    origin: str


def _flag(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise ValueError("expected 1 or 0")
    return text.lower() in _YES


def _seconds(text: str) -> float | None:
    return None if text.lower() == "none" else float(text)


def _checked(name: str, value: object) -> object:
    if _PARSERS[name] is _seconds:
        return None if value is None else arguments.seconds(name, value)
    return _CHECKS[name](name, value)


def _whole(text: str) -> int:
    return int(text, 0)


def _mode(text: str) -> int:
    return int(text, _OCTAL)


# How text of the environment is read, for each option that can be set.
_PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "allow_network": _flag,
    "block_bytes": _whole,
    "buffer_capacity_bytes": _whole,
    "buffer_mode": str,
    "consumption": str,
    "cycle_format": str,
    "cycle_length_ms": _whole,
    "cycle_time_zone": str,
    "data_block_bytes": _whole,
    "double_buffer": _flag,
    "durability": str,
    "entries_per_cycle": _whole,
    "eof_grace_s": _seconds,
    "epoch_ms": _whole,
    "file_mode": _mode,
    "force_unlock": str,
    "group_commit_s": _seconds,
    "index_block_bytes": _whole,
    "index_count": _whole,
    "index_spacing": _whole,
    "linger_s": _seconds,
    "low_space_percent": _whole,
    "max_clock_ahead_s": _seconds,
    "metrics": _flag,
    "on_full": str,
    "page_bytes": _whole,
    "pretouch": _flag,
    "read_buffer_mode": str,
    "roll_cycle": str,
    "roll_time": str,
    "source_id": _whole,
    "synchronous": _flag,
    "tid_bits": _whole,
    "time_index": _flag,
    "time_zone": str,
    "timeout_s": _seconds,
    "wire_type": str,
    "write_buffer_mode": str,
}
_BUFFER_MODE: Final = arguments.one_of("async", "none")
_CHECKS: Final[Mapping[str, arguments.Check]] = {
    **_options.CHECKS,
    "buffer_mode": _BUFFER_MODE,
    "read_buffer_mode": _BUFFER_MODE,
    "write_buffer_mode": _BUFFER_MODE,
    "time_zone": arguments.text,
}

# What an existing queue has recorded, or shows by its files.
AT_CREATION: Final = {
    "cycle_format",
    "cycle_length_ms",
    "cycle_time_zone",
    "data_block_bytes",
    "entries_per_cycle",
    "epoch_ms",
    "index_block_bytes",
    "index_count",
    "index_spacing",
    "page_bytes",
    "roll_cycle",
    "roll_time",
    "source_id",
    "tid_bits",
    "time_zone",
    "wire_type",
}
# What a file that was found, and not named, may set: nothing that widens access, loses or delays
# messages, takes a lock from its holder, or claims memory and disk space.
_HARMLESS: Final = AT_CREATION - {"data_block_bytes", "index_block_bytes", "page_bytes"} - {
    "entries_per_cycle"
} | {
    "consumption",
    "double_buffer",
    "durability",
    "metrics",
    "pretouch",
    "synchronous",
    "time_index",
    "timeout_s",
}
_MODES: Final = {"buffer_mode", "read_buffer_mode", "write_buffer_mode"}
_OF_RINGS: Final = {"buffer_capacity_bytes", "on_full"}
# Where one of them is given, the others are not set.
_TOGETHER: Final = (
    _MODES,
    {"time_zone", "roll_time_zone"},
    {"durability", "group_commit_s"},
    {"roll_cycle", "cycle_length_ms", "cycle_format"},
)
# What the formats' lists of options call them.
_CHECKED_AS: Final = {
    "buffer_mode": "write_buffer_mode",
    "eof_grace_s": "eof_grace_ms",
    "group_commit_s": "group_commit_us",
    "linger_s": "linger_ms",
    "max_clock_ahead_s": "max_clock_ahead_ms",
    "time_zone": "roll_time_zone",
    "timeout_s": "timeout_ms",
}
_ALLOWED: Final = {
    detection.CHRONICLE: _options.CHRONICLE,
    detection.VANILLA: _options.VANILLA,
    detection.QUICK_QUEUE: _options.QUICK_QUEUE,
    detection.INDEXED: _options.INDEXED,
}


def configured(opening: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have a function with the options of ``quire.open`` take those that are set from outside."""

    @wraps(opening)
    def opened(*args: _P.args, **given: _P.kwargs) -> _R:
        found = settings()
        if not found:
            return opening(*args, **given)
        path = args[0] if args else given.get("path")
        applied = for_opening(path, given, found)
        given.update({name: it.value for name, it in applied.items()})
        try:
            return opening(*args, **given)
        except (TypeError, ValueError) as error:
            if applied:
                origins = " ".join(f"{name}={it.origin}" for name, it in sorted(applied.items()))
                error.add_note(f"options that were not given were set: {origins}")
            raise

    return opened


def for_opening(
    path: object, given: Mapping[str, object], found: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return those settings that hold for the queue at a path and were not given."""
    try:
        kind = detection.format_of(arguments.path("path", path))
    except (TypeError, ValueError, NotAQueueError):
        return {}  # opening says what is wrong
    names = options_of(kind or str(given.get("format") or detection.CHRONICLE), exists=bool(kind))
    clock = given.get("clock")
    if given.get("read_only") or (callable(clock) and not isinstance(clock, ManualClock)):
        names -= _MODES
    if given.get("durability", "process") != "process":
        names -= _MODES  # an append would return before what the program asked for holds
    for group in _TOGETHER:
        if group & given.keys():
            names -= group
    names &= found.keys() - given.keys()
    modes = {**{name: found[name].value for name in names}, **given}
    if all(modes.get(name) != "async" for name in _MODES):
        names -= _OF_RINGS
    if modes.get("durability", "process") == "process":
        names.discard("group_commit_s")
    return {name: found[name] for name in names}


def options_of(kind: str, *, exists: bool) -> set[str]:
    """Return which options can be set for a queue of a format."""
    allowed = _ALLOWED.get(kind, _options.CHRONICLE)
    names = {name for name in _PARSERS if _CHECKED_AS.get(name, name) in allowed}
    return names - AT_CREATION if exists else names


def settings() -> dict[str, Setting]:
    """
    Return the options that are set from outside, by their names.

    Raises:
        SettingError: The settings file, a value or an option's name in the file is not valid.
        OSError: The file that ``QUIRE_CONFIG`` names cannot be read.

    """
    return {**dict(_of_file()), **dict(_of_environment())}


def misspelt() -> Iterator[tuple[str, str | None]]:
    """Yield environment variables that may be misspelt options, each with the likely option."""
    from difflib import get_close_matches

    known = [PREFIX + name.upper() for name in _PARSERS]
    for variable, name in _variables():
        if name not in _PARSERS and variable != FILE_VARIABLE:
            yield variable, next(iter(get_close_matches(variable.upper(), known, n=1)), None)


def _variables() -> Iterator[tuple[str, str]]:
    """Yield the variables that begin as those of options, and the rest of their names."""
    for variable in os.environ:
        if variable.startswith(PREFIX):
            yield variable, variable.removeprefix(PREFIX).lower()


def _of_environment() -> Iterator[tuple[str, Setting]]:
    for variable, name in _variables():
        if name not in _PARSERS:
            continue
        text = os.environ[variable]
        try:
            value = _checked(name, _PARSERS[name](text))
        except (TypeError, ValueError) as error:
            raise SettingError(f"invalid {variable}={text!r:.80}: {error}") from None
        yield name, Setting(value, variable)


def _of_file() -> Iterator[tuple[str, Setting]]:
    named = os.environ.get(FILE_VARIABLE)
    try:
        path = os.path.abspath(named or FILE)  # noqa: PTH100 - a path object costs more than the rest
    except FileNotFoundError:  # the working directory is gone
        if named:
            raise
        return
    content = _content(path, must_exist=bool(named))
    if content is None:
        return
    for name, value in _options_in(content, path).items():
        if not named and name not in _HARMLESS:
            _warn(f"name it by {FILE_VARIABLE} to set option={name}", path)
            continue
        try:
            yield name, Setting(_checked(name, value), path)
        except (TypeError, ValueError) as error:
            raise SettingError(f"{error}: path={path}") from None


def _options_in(content: bytes, path: str) -> dict[str, object]:
    import tomllib

    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # not only those of its own
        raise SettingError(f"not a TOML file: {error}: path={path}") from None
    unknown = sorted(tables.keys() - {_TABLE})
    options = tables.get(_TABLE, {})
    if unknown or not isinstance(options, dict):
        what = unknown[0] if unknown else _TABLE
        raise SettingError(f"expected one table, [{_TABLE}]: found={what!r:.80} path={path}")
    found = cast("dict[str, object]", options)
    for name in found:
        if name not in _PARSERS:
            raise SettingError(f"not an option that can be set: option={name!r:.80} path={path}")
    return found


def _why_not_trusted(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file:"
    if status.st_uid not in {0, os.geteuid()} or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        return f"another user could have written it: owner={status.st_uid} mode={mode:04o}"
    return None


def _warn(problem: str | None, path: str) -> None:
    import logging  # which a command need not wait for

    logger = logging.getLogger("quire")
    logger.warning("options are not taken from a file: %s path=%s", problem, path)


def _opened(flags: int, path: str, more: int) -> int:
    return os.open(path, flags | more | os.O_NONBLOCK)


def _content(path: str, *, must_exist: bool) -> bytes | None:
    """Return the content of a file that no other user can have written; None if there is none."""
    # A link is followed where the user named it: nobody vouches for one that is found here.
    follow = 0 if must_exist else os.O_NOFOLLOW
    try:
        file = open(path, "rb", opener=partial(_opened, follow))  # noqa: SIM115 - closed below
    except OSError as error:
        if must_exist:
            raise
        if not isinstance(error, FileNotFoundError):
            _warn(error.strerror, path)
        return None
    with file:
        problem = _why_not_trusted(os.fstat(file.fileno()))
        if problem is None and not must_exist and detection.may_hold_queues(os.path.dirname(path)):  # noqa: PTH120
            problem = f"it lies where queues are: name it by {FILE_VARIABLE} if it is yours:"
        if problem:
            if must_exist:
                raise SettingError(f"{problem} path={path}")
            _warn(problem, path)
            return None
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise SettingError(f"longer than {_LONGEST} bytes: path={path}")
    return content
