"""The options that a queue is opened with: those given, checked, and those set from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from typing import Any, Final, ParamSpec, TypeVar, cast

from quire._common import arguments
from quire.errors import NotAQueueError, UnsupportedError
from quire.formats import detection
from quire.formats.adapter import Adapter
from quire.formats.adapters import ADAPTERS, adapter_named
from quire.formats.missing import article
from quire.opening.declaring import Option
from quire.opening.options import (
    MODES,
    OF_CLASS,
    OF_RINGS,
    OPTIONS,
    LayoutOptions,
    OpenOptions,
    Options,
    Parts,
    given_of,
    place_of,
    refuse_unknown,
)
from quire.opening.settings import Setting, for_opening, settings
from quire.sealed.key_file import is_encrypted

_P = ParamSpec("_P")
_Q = TypeVar("_Q")


@dataclass(frozen=True)
class Opener:
    """
    What opens queues with the options that it is given.

    Attributes:
        handles: The class of the queues of each format. If there are several, the keyword *format*
            asks for one of them.
        known: The options that are keywords, by their names as keywords.
        parts: The classes of options that are keywords.

    """

    handles: Mapping[str, Any]
    known: Mapping[str, Option]
    parts: Parts

    def __call__(self, declared: Callable[_P, _Q]) -> Callable[_P, _Q]:
        """
        Return what opens queues by the keywords that a function declares.

        Its body is not called: what it was not given can be set from outside.
        """

        @wraps(declared)
        def opened(path: str | PathLike[str], **given: Any) -> _Q:  # noqa: ANN401
            return cast("_Q", self.open(declared.__name__, path, given))

        return cast("Callable[_P, _Q]", opened)

    def open(self, call: str, path: str | PathLike[str], given: dict[str, Any]) -> Any:  # noqa: ANN401
        """Open a queue; *call* is what the keywords were given to."""
        asked = self.only or given.pop("format", None)
        found = settings()
        options = self.checked(call, given)
        path = arguments.path("path", path)
        may_create = options.get("create", True) and not options.get("read_only")
        adapter, exists = format_to_open(path, asked, may_create=bool(may_create))
        applied = applied_to(adapter.name, path, options, found, exists=exists) if found else {}
        options |= {name: it.value for name, it in applied.items()}
        try:
            return self.handles[adapter.name]._reopen(path, native(adapter, options))  # noqa: SLF001
        except (TypeError, ValueError, UnsupportedError) as error:
            _note(error, applied)
            raise

    @property
    def only(self) -> str | None:
        """The format, if there is but one."""
        return next(iter(self.handles)) if len(self.handles) == 1 else None

    def checked(self, call: str, given: Mapping[str, object]) -> dict[str, object]:
        """
        Return the options that were given, checked, by their names in settings.

        Raises:
            TypeError: An option is unknown, or its value has the wrong type.
            ValueError: The value of an option is not valid.
            UnsupportedError: The only format lacks an option.

        """
        found: dict[str, object] = {}
        for name, value in given.items():
            option, part = self.known.get(name), self.parts.get(name)
            if option is not None:
                found[option.setting] = option.check(name, value)
            elif part is None:
                self._refuse(call, name, value)
            elif isinstance(value, part):
                found |= given_of(value)
            elif value is not None:
                raise arguments.refusal(name, f"a {place_of(part)} or None", value)
        return found

    def _refuse(self, call: str, name: str, value: object) -> None:
        """Refuse a keyword: another format has it, it belongs elsewhere, or it does not exist."""
        formats = [it.formats for it in OPTIONS.values() if it.name == name]
        if self.only is not None and formats and all(self.only not in it for it in formats):
            raise _not_an_option(adapter_named(self.only), name, value)
        refuse_unknown(call, {name: value}, self.known)


def applied_to(
    kind: str,
    path: str,
    given: Mapping[str, object],
    found: Mapping[str, Setting],
    *,
    exists: bool,
) -> dict[str, Setting]:
    """Return the settings that apply to a queue, or to a new one, and were not given."""
    known = {**given, "key": path} if is_encrypted(path) else given
    return for_opening(kind, known, found, exists=exists)


def _note(error: Exception, applied: Mapping[str, Setting]) -> None:
    """Say in an error where options came from that the program did not give."""
    if applied:
        origins = " ".join(f"{name}={it.origin}" for name, it in sorted(applied.items()))
        error.add_note(f"options that were not given were set: {origins}")


def keywords(kind: str, own: type[Options]) -> dict[str, Option]:
    """Return the options that the own way of opening a format takes as single keywords."""
    classes = (own, OpenOptions, LayoutOptions)
    shared = (it for owner in classes for it in OF_CLASS[owner].values())
    return {it.name: it for it in shared if kind in it.formats}


def format_to_open(path: str, asked: str | None, *, may_create: bool) -> tuple[Adapter[Any], bool]:
    """
    Return the format of the queue at *path*, or of a new one, and whether there is one.

    Raises:
        NotAQueueError: *path* holds a queue of another format than *asked*, a part of a queue or,
            unless *may_create*, a directory of queues.

    """
    if asked is not None:
        _FORMAT("format", asked)
    found = detection.format_of(path)
    if found is not None and adapter_named(found).leaves_path_free:
        return adapter_named(asked or found), True
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
    return adapter_named(found or asked), found is not None


_FORMAT: Final = arguments.one_of(*(it.name for it in ADAPTERS))


def _not_an_option(adapter: Adapter[Any], name: str, value: object) -> UnsupportedError:
    return UnsupportedError(f"not an option of {article(adapter.title)}: {name}={value!r:.80}")


def native(adapter: Adapter[Any], asked: Mapping[str, object]) -> dict[str, Any]:
    """
    Return what the native class of a format takes for options by their names in settings.

    Raises:
        UnsupportedError: The format lacks an option.
        ValueError: An option needs another one that was not asked for.

    """
    found: dict[str, Any] = {}
    for setting, value in asked.items():
        option = OPTIONS[setting]
        if adapter.name in option.formats:
            found[option.native] = option.converted(value) if option.converted else value
        elif value != option.default and not (value == "none" and setting in MODES):
            raise _not_an_option(adapter, option.name, value)
    if not _IN_NEED.isdisjoint(asked):
        _refuse_idle(asked)
    both = found.pop("buffer_mode", None)
    if found.get("write_buffer_mode") is None and both is not None:
        found["write_buffer_mode"] = both
    for name in ("read_buffer_mode", "write_buffer_mode"):
        if found.get(name) == "none":
            del found[name]
    return found


_IN_NEED: Final = frozenset({*OF_RINGS, "group_commit_s"})


def _refuse_idle(asked: Mapping[str, object]) -> None:
    """Refuse an option of a ring, or of syncing, where the mode that uses it was not asked for."""
    mode = asked.get("write_buffer_mode") or asked.get("buffer_mode")
    if "async" not in {mode, asked.get("read_buffer_mode")}:
        for setting in OF_RINGS:
            option = OPTIONS[setting]
            if (value := asked.get(setting, option.default)) != option.default:
                raise ValueError(f"{option.name}={value!r} needs buffer_mode='async'")
    if asked.get("durability", "process") == "process" and asked.get("group_commit_s") is not None:
        raise ValueError("group_commit_s needs durability='batch' or 'each'")
