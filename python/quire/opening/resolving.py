"""What a queue is opened with: what was given, checked, and what is set from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from os import PathLike
from typing import Any, Final, ParamSpec, TypeVar, cast

from quire._common import arguments
from quire.errors import NotAQueueError, UnsupportedError
from quire.formats import detection
from quire.formats.missing import article
from quire.opening.declaring import Option
from quire.opening.options import MODES, OF_CLASS, OPTIONS, PARTS, Options, given_of, refuse_unknown
from quire.opening.settings import Setting, for_opening, settings

_P = ParamSpec("_P")
_Q = TypeVar("_Q")


def opening(
    handles: Mapping[str, Any],
    known: Mapping[str, Option],
) -> Callable[[Callable[_P, _Q]], Callable[_P, _Q]]:
    """
    Have a function that declares keywords open queues with those that it is given.

    Its body is not called: what it was not given can be set from outside.

    Args:
        handles: The class of the queues of each format. If there are several, the keyword *format*
            asks for one of them, and :data:`PARTS` are keywords too.
        known: The options that are keywords, by their names.

    """
    only = next(iter(handles)) if len(handles) == 1 else None

    def decorated(declared: Callable[_P, _Q]) -> Callable[_P, _Q]:
        @wraps(declared)
        def opened(path: str | PathLike[str], **given: Any) -> _Q:  # noqa: ANN401
            asked = only or given.pop("format", None)
            found = settings()
            options = checked(declared.__name__, given, known, only)
            path = arguments.path("path", path)
            may_create = options.get("create", True) and not options.get("read_only")
            kind, exists = format_to_open(path, asked, may_create=bool(may_create))
            applied = for_opening(kind, options, found, exists=exists) if found else {}
            options |= {name: it.value for name, it in applied.items()}
            try:
                return cast("_Q", handles[kind]._reopen(path, native(kind, options)))  # noqa: SLF001
            except (TypeError, ValueError) as error:
                _note(error, applied)
                raise

        return cast("Callable[_P, _Q]", opened)

    return decorated


def _note(error: Exception, applied: Mapping[str, Setting]) -> None:
    """Say in an error where options came from that the program did not give."""
    if applied:
        origins = " ".join(f"{name}={it.origin}" for name, it in sorted(applied.items()))
        error.add_note(f"options that were not given were set: {origins}")


def keywords(kind: str, own: type[Options]) -> dict[str, Option]:
    """Return all options that a format has, which its own way of opening takes as keywords."""
    shared = {it.name: it for it in OPTIONS.values() if kind in it.formats}
    return {**OF_CLASS[own], **shared}


def format_to_open(path: str, asked: str | None, *, may_create: bool) -> tuple[str, bool]:
    """
    Return the format of the queue at *path*, or of a new one, and whether there is one.

    Raises:
        NotAQueueError: *path* holds a queue of another format than *asked*, a part of a queue or,
            unless *may_create*, a directory of queues.

    """
    if asked is not None:
        _FORMAT("format", asked)
    found = detection.format_of(path)
    if found == detection.INDEXED:
        return asked or found, True  # two files beside a path that is free
    if found is None or detection.is_producers(path):
        detection.refuse_part(path)
    if found is None:
        if not may_create:
            detection.refuse_queues(path)
    elif asked not in {None, found}:
        raise NotAQueueError(
            f"the directory holds a queue of another format: asked={asked} found={found} "
            f"path={path} (leave format out to join it)"
        )
    return found or asked or detection.CHRONICLE, found is not None


_FORMAT: Final = arguments.one_of(*detection.FORMATS, detection.INDEXED)


def checked(
    call: str, given: Mapping[str, object], known: Mapping[str, Option], only: str | None
) -> dict[str, object]:
    """
    Return the options that were given, checked, by their names in settings.

    Raises:
        TypeError: An option is unknown, or its value has the wrong type.
        ValueError: The value of an option is not valid.
        UnsupportedError: The *only* format lacks an option.

    """
    found: dict[str, object] = {}
    for name, value in given.items():
        option, part = known.get(name), PARTS.get(name)
        if option is not None:
            found[option.setting] = option.check(name, value)
        elif only is not None and any(it.name == name for it in OPTIONS.values()):
            raise _not_an_option(only, name, value)
        elif only is not None or part is None:
            refuse_unknown(call, given, known)
        elif isinstance(value, part):
            found |= given_of(value)
        elif value is not None:
            raise arguments.refusal(name, f"a quire.{part.__name__} or None", value)
    return found


def _not_an_option(kind: str, name: str, value: object) -> UnsupportedError:
    format_name = article(_FORMAT_NAMES[kind])
    return UnsupportedError(f"not an option of {format_name}: {name}={value!r:.80}")


def native(kind: str, asked: Mapping[str, object]) -> dict[str, Any]:
    """
    Return what the native class of a format takes for options by their names in settings.

    Raises:
        UnsupportedError: The format lacks an option.
        ValueError: An option needs another one that was not asked for.

    """
    found: dict[str, Any] = {}
    for setting, value in asked.items():
        option = OPTIONS[setting]
        if kind in option.formats:
            found[option.native] = option.converted(value) if option.converted else value
        elif value != option.default and not (value == "none" and setting in MODES):
            raise _not_an_option(kind, option.name, value)
    if not _IN_NEED.isdisjoint(asked):
        _refuse_idle(asked)
    both = found.pop("buffer_mode", None)
    if found.get("write_buffer_mode") is None and both is not None:
        found["write_buffer_mode"] = both
    for name in ("read_buffer_mode", "write_buffer_mode"):
        if found.get(name) == "none":
            del found[name]
    return found


_IN_NEED: Final = frozenset({"buffer_capacity_bytes", "on_full", "group_commit_s"})
_FORMAT_NAMES: Final = {
    detection.CHRONICLE: "Chronicle Queue",
    detection.VANILLA: "Vanilla Chronicle",
    detection.QUICK_QUEUE: "Quick-Queue",
    detection.INDEXED: "Indexed Chronicle",
}


def _refuse_idle(asked: Mapping[str, object]) -> None:
    """Refuse an option of a ring, or of syncing, where the mode that uses it was not asked for."""
    mode = asked.get("write_buffer_mode") or asked.get("buffer_mode")
    if "async" not in {mode, asked.get("read_buffer_mode")}:
        for setting in ("buffer_capacity_bytes", "on_full"):
            option = OPTIONS[setting]
            if (value := asked.get(setting, option.default)) != option.default:
                raise ValueError(f"{option.name}={value!r} needs buffer_mode='async'")
    if asked.get("durability", "process") == "process" and asked.get("group_commit_s") is not None:
        raise ValueError("group_commit_s needs durability='batch' or 'each'")
