"""The declaration of an option: its check, its formats, and how it may be set from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from quire._common import arguments
from quire._common.watching import Watcher
from quire._native import ManualClock, RollCycle
from quire.errors import UnsupportedError
from quire.formats import detection

JOURNAL: Final = frozenset({detection.CHRONICLE})
VANILLA: Final = frozenset({detection.VANILLA})
QUICK_QUEUE: Final = frozenset({detection.QUICK_QUEUE})
WRITTEN: Final = JOURNAL | VANILLA | QUICK_QUEUE
EVERY: Final = WRITTEN | {detection.INDEXED}

_OCTAL: Final = 8
_LONGEST_COMMIT_S: Final = 3600
_YES: Final = {"1", "true", "yes", "on"}
_NO: Final = {"", "0", "false", "no", "off"}


class Option(NamedTuple):
    """
    What is declared of an option, in the metadata of its field.

    Attributes:
        check: Returns a value as it is kept, or raises an error that names the option.
        formats: Those that have it.
        parse: How the text of an environment variable is read; None: only a program can give it.
        from_outside: Checks what the environment or a file sets, where *check* allows more.
        setting: Its name in ``quire.toml``, and in capitals in the environment, if not the field's.
        native: Its name in the native class, if not the field's.
        converted: Makes the native class's value.
        at_creation: Whether an existing queue has recorded it, or shows it by its files.
        harmless: Whether a ``quire.toml`` that was found, and not named, may set it: it neither
            widens access, nor loses or delays messages, takes a lock from its holder, or claims
            memory and disk space.
        opens: Whether a queue is opened with it; False: something that it hands out takes it.
        name: That of the field.
        default: That of the field.
        place: Where a program gives it.

    """

    check: arguments.Check
    formats: frozenset[str]
    parse: Callable[[str], object] | None = None
    from_outside: arguments.Check | None = None
    setting: str = ""
    native: str = ""
    converted: Callable[[Any], object] | None = None
    at_creation: bool = False
    harmless: bool = False
    opens: bool = True
    name: str = ""
    default: object = None
    place: str = ""


def option(check: arguments.Check, formats: frozenset[str], **more: Any) -> dict[str, Option]:  # noqa: ANN401
    """Return the metadata of an option's field."""
    return {"option": Option(check, formats, **more)}


def parse_flag(text: str) -> bool:
    """Return whether text of the environment switches an option on."""
    if text.lower() not in _YES | _NO:
        raise ValueError("expected 1 or 0")
    return text.lower() in _YES


def parse_seconds(text: str) -> float | None:
    """Return the seconds that text of the environment gives; None for ``none``."""
    return None if text.lower() == "none" else float(text)


def parse_whole(text: str) -> int:
    """Return the integer that text of the environment gives, such as ``0x10000``."""
    return int(text, 0)


def parse_octal(text: str) -> int:
    """Return the permission bits that text of the environment gives."""
    return int(text, _OCTAL)


def to_ms(seconds: float | None) -> int | None:
    """Return seconds as milliseconds."""
    return None if seconds is None else arguments.milliseconds("", seconds)


def to_us(seconds: float | None) -> int | None:
    """Return seconds as microseconds."""
    return None if seconds is None else round(seconds * 1e6)


def _clock(name: str, found: object) -> object:
    if isinstance(found, ManualClock) or callable(found):
        return found
    raise arguments.refusal(name, "a quire.ManualClock, a callable or None", found)


def check_roll_cycle(name: str, found: object) -> str | RollCycle:
    """Check a roll cycle, or the name of one."""
    if not isinstance(found, str | RollCycle):
        raise arguments.refusal(name, "the name of a roll cycle, or a quire.RollCycle", found)
    return found


def check_rules(name: str, found: object) -> tuple[Watcher, ...]:
    """Check a rule, or a list of them."""
    given = (found,) if isinstance(found, Watcher) else found
    if not isinstance(given, list | tuple):
        raise arguments.refusal(name, "a quire.Retention, or a list of them", found)
    rules = cast("Sequence[object]", given)
    for rule in rules:
        if not isinstance(rule, Watcher):
            raise arguments.refusal(name, "a quire.Retention, or a list of them", rule)
    return cast("tuple[Watcher, ...]", tuple(rules))


def check_commit(name: str, found: object) -> float:
    """Check seconds, an hour at most."""
    seconds = arguments.seconds(name, found)
    if not seconds <= _LONGEST_COMMIT_S:
        raise arguments.out_of_range(name, f"at most {_LONGEST_COMMIT_S} seconds", found)
    return seconds


def check_mode(name: str, found: object) -> str:
    """Check a buffer mode that Quire has."""
    mode = cast("str", _MODES(name, found))
    if mode == "copy":
        raise UnsupportedError(
            f"{name}='copy': such buffers serve Java's encryption (Quire's, key=, needs none)"
        )
    return mode


_MODES: Final = arguments.one_of("none", "async", "copy")
RING_MODE: Final[dict[str, Any]] = {"parse": str, "from_outside": arguments.one_of("async", "none")}
LISTENER: Final = arguments.optional(
    arguments.function("a callable of a cycle and a path, or None")
)
SIZE: Final = arguments.optional(arguments.whole(0, 2**63 - 1))
UNSIGNED: Final = arguments.optional(arguments.whole(0, 2**32 - 1))
TEXT: Final = arguments.optional(arguments.text)
check_clock: Final = arguments.optional(_clock)
RECORDED: Final[dict[str, Any]] = {"at_creation": True, "harmless": True}
