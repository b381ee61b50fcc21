"""
Options of ``quire.open`` that the environment or a file sets, as Java's are by system properties.

``QUIRE_TIMEOUT_S=30`` sets *timeout_s*. So does ``timeout_s = 30`` in the table ``[open]`` of the
file that ``QUIRE_CONFIG`` names, or of ``quire.toml`` in the working directory. Options that a
program gives explicitly override both, and the environment overrides the file.

A ``quire.toml`` that was merely found may have come with data from elsewhere: it is not read from
directories of queues, and sets only options that cannot weaken safety.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple, cast

from quire._native import ManualClock
from quire.errors import SettingError
from quire.formats import detection
from quire.opening.options import MODES, OF_CLASS, OF_RINGS, OPTIONS, PretoucherOptions

PREFIX: Final = "QUIRE_"
FILE: Final = "quire.toml"
FILE_VARIABLE: Final = "QUIRE_CONFIG"
TOKEN_VARIABLE: Final = "QUIRE_TOKEN"  # noqa: S105 - a name; the command line's, no option
_TABLE: Final = "open"
_LONGEST: Final = 2**16


class Setting(NamedTuple):
    """The value of an option, and where it was set."""

    value: object
    origin: str


# What the environment or a file can set, by its name there.
SETTABLE: Final = {name: it for name, it in OPTIONS.items() if it.parse is not None}
# Where one of them is given, the others are not set.
_TOGETHER: Final = (
    MODES,
    {"durability", "group_commit_s"},
    {"roll_cycle", "cycle_length_ms", "cycle_format"},
)


def for_opening(
    kind: str, given: Mapping[str, object], found: Mapping[str, Setting], *, exists: bool
) -> dict[str, Setting]:
    """Return the settings that apply to a queue of a format and were not given."""
    names = {name for name in settable(kind, exists=exists) if SETTABLE[name].opens}
    if given.get("read_only"):
        names -= MODES | {"integrity"}  # a reader appends and seals nothing
    clock = given.get("clock")
    if callable(clock) and not isinstance(clock, ManualClock):
        names -= MODES
    if given.get("key") is not None:
        names -= MODES  # a ring would hold plain messages
    if given.get("durability", "process") != "process":
        names -= MODES  # an append would return before what the program asked for holds
    for group in _TOGETHER:
        if group & given.keys():
            names -= group
    names &= found.keys() - given.keys()
    modes = {**{name: found[name].value for name in names}, **given}
    if all(modes.get(name) != "async" for name in MODES):
        names -= {*OF_RINGS}
    if modes.get("durability", "process") == "process":
        names.discard("group_commit_s")
    return {name: found[name] for name in names}


def for_pretoucher(
    given: Mapping[str, object | None], found: Mapping[str, Setting]
) -> dict[str, object]:
    """Return the options of a pretoucher, checked: what is None was not given."""
    options: dict[str, object] = {}
    for name, option in OF_CLASS[PretoucherOptions].items():
        if (value := given[name]) is not None:
            options[name] = option.check(name, value)
        else:
            options[name] = found[name].value if name in found else option.default
    return options


def settable(kind: str, *, exists: bool) -> set[str]:
    """Return the names of the settings for a queue of a format."""
    return {
        name
        for name, it in SETTABLE.items()
        if kind in it.formats and not (exists and it.at_creation)
    }


def settings() -> dict[str, Setting]:
    """
    Return the options that are set from outside, by their names.

    Raises:
        SettingError: The settings file, a value or an option's name in the file is not valid.
        OSError: The file that ``QUIRE_CONFIG`` names cannot be read.

    """
    has_variables = _has_variables()
    found = dict(_of_file()) if has_variables or os.access(FILE, os.F_OK) else {}
    return found | dict(_of_environment()) if has_variables else found


def _has_variables() -> bool:
    # CPython keeps the environment as bytes: to decode every name costs more than to open a queue.
    names = getattr(os.environ, "_data", None)
    return names is None or PREFIX.encode() in b"\0".join(names)


def misspelt() -> Iterator[tuple[str, str | None]]:
    """Yield environment variables that may be misspelt options, each with the likely option."""
    from difflib import get_close_matches

    known = [PREFIX + name.upper() for name in SETTABLE]
    for variable, name in _variables():
        if name not in SETTABLE and variable not in {FILE_VARIABLE, TOKEN_VARIABLE}:
            yield variable, next(iter(get_close_matches(variable.upper(), known, n=1)), None)


def _variables() -> Iterator[tuple[str, str]]:
    """Yield the variables that begin as those of options, and the rest of their names."""
    for variable in os.environ:
        if variable.startswith(PREFIX):
            yield variable, variable.removeprefix(PREFIX).lower()


def _checked(name: str, value: object) -> object:
    option = SETTABLE[name]
    return (option.from_outside or option.check)(name, value)


def _of_environment() -> Iterator[tuple[str, Setting]]:
    for variable, name in _variables():
        if name not in SETTABLE:
            continue
        text = os.environ[variable]
        try:
            value = _checked(name, (SETTABLE[name].parse or str)(text))
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
        if not named and not SETTABLE[name].harmless:
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
        if name not in SETTABLE:
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
            problem = f"it is in a directory of queues: name it by {FILE_VARIABLE} if it is yours:"
        if problem:
            if must_exist:
                raise SettingError(f"{problem} path={path}")
            _warn(problem, path)
            return None
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise SettingError(f"longer than {_LONGEST} bytes: path={path}")
    return content
