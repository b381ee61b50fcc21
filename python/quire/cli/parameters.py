"""What the verbs share: paths, points, and opening a queue read-only."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import click

import quire
from quire._common.units import relative_time, size_bytes
from quire.cli.remote_options import Place, place_of
from quire.errors import WhereError
from quire.opening.opener import SCHEME
from quire.ranges.event_time import datetime_of

if TYPE_CHECKING:
    from quire._native import Method
    from quire.cli.where.conditions import Condition
    from quire.recording.addresses import Address

Zone: TypeAlias = Callable[[datetime], datetime]
"""Moves a time to a time zone."""

_PAST_INDEXES: Final = 2**63
_INDEX: Final = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[: ]*")
_MILLISECONDS: Final = re.compile(r"[0-9]+ms")


class _Path(click.Path):
    """A path that is not empty: that of an unset variable would be the working directory."""

    def convert(
        self,
        value: str | PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | PathLike[str]:
        """Refuse it, or make a path of it."""
        if value == "":
            self.fail("an empty path; the working directory is .", param, ctx)
        if str(value).startswith(SCHEME):
            self.fail(_only_here(str(value), ctx), param, ctx)
        return super().convert(value, param, ctx)


class _QueuePath(_Path):
    """Such a path, or the address of a queue of a server: a :class:`RemotePlace`."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - a place, too
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401
        """Make a place of an address, or a path."""
        if isinstance(value, str) and value.startswith(SCHEME):
            return place_of(value, ctx)
        return super().convert(value, param, ctx)


def _only_here(address: str, ctx: click.Context | None) -> str:
    """Return why a verb takes no address, and what to do."""
    from quire.cli.verb_group import TAKES_ADDRESSES

    verb = "this" if ctx is None else f"quire {ctx.info_name}"
    return (
        f"{verb} works on files of this machine: {address} (run it on the server's machine;"
        f" {', '.join(sorted(TAKES_ADDRESSES))} take addresses)"
    )


class NumberRange(click.FloatRange):
    """A range of numbers, which NaN is not in."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click declares it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Check a number."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no number.", param, ctx)
        return number


class SizeRange(click.IntRange):
    """A range of numbers of bytes, which may be given as sizes such as ``32MiB``."""

    name = "size range"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click declares it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Check a size."""
        try:
            count = size_bytes(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        whole: int = super().convert(count, param, ctx)
        return whole


PATH: Final = _Path(path_type=Path, readable=False)  # the library says why it cannot
QUEUE: Final = _QueuePath(path_type=Path, readable=False)
"""The same, or an address as ``quire://HOST:PORT/QUEUE``: for verbs of ``TAKES_ADDRESSES``."""


def address_like(example: str) -> Callable[[str], Address]:
    """Return what parses an address, ``HOST:PORT`` or a port alone; an error shows the example."""
    from quire.recording.addresses import parse_address

    def address_of(value: str) -> Address:
        try:
            return parse_address(value)
        except ValueError:
            expected = f"HOST:PORT, such as {example}, or a port alone"
            raise click.BadParameter(f"{value!r} is not {expected}") from None

    return address_of


def index_of(value: str) -> int:
    """
    Parse an index: hexadecimal with ``0x``, or decimal; a trailing colon is allowed.

    Raises:
        click.BadParameter: The value is not an index.

    """
    try:
        index = int(value.rstrip(": "), 0)
    except ValueError:
        index = -1
    if not 0 <= index < _PAST_INDEXES:
        raise click.BadParameter(f"{value!r} is not an index, such as 0x4d1900000000")
    return index


def parse_point(value: str) -> int | datetime:
    """
    Return a point of a queue: an index; or a time.

    A time is in ISO 8601, in milliseconds since 1970 as ``1705314600000ms``, ``now``, or a duration
    before now as ``-15m``.

    Raises:
        click.BadParameter: The value is neither an index nor a time.

    """
    if _INDEX.fullmatch(value):
        return index_of(value)
    if (time := relative_time(value, datetime.now(UTC))) is not None:
        return time
    try:
        if _MILLISECONDS.fullmatch(value):
            return datetime_of(int(value.removesuffix("ms")) * 1_000_000)
        return datetime.fromisoformat(value)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is neither an index, such as 0x4d1900000000, nor a time, such as"
            " 2024-01-15T10:30:00Z, 1705314600000ms, or -15m for 15 minutes ago"
        ) from None


def pattern_of(value: str) -> re.Pattern[str]:
    """
    Return a regular expression.

    Raises:
        click.BadParameter: The value is not a regular expression.

    """
    try:
        return re.compile(value, re.MULTILINE)
    except re.error as error:
        raise click.BadParameter(f"{value!r} is not a regular expression: {error}") from error


def condition_of(value: str) -> Condition:
    """
    Return an expression as a condition.

    Raises:
        click.BadParameter: The value is not an expression.

    """
    from quire.cli.where.language import parse_where

    try:
        return parse_where(value)
    except WhereError as error:
        raise click.BadParameter(str(error)) from error


def names_of(value: str) -> tuple[str, ...]:
    """
    Return names that commas separate.

    Raises:
        click.BadParameter: A name is empty or repeated.

    """
    names = tuple(name.strip() for name in value.split(","))
    if not all(names) or len({*names}) < len(names):
        raise click.BadParameter(f"{value!r} must be different names, such as symbol,price")
    return names


def zone_of(value: str) -> Zone:
    """
    Return what moves a time to the zone of this name, or to ``local`` time.

    Raises:
        click.BadParameter: No time zone has this name.

    """
    if value == "local":
        return datetime.astimezone
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(value)
    except (ValueError, OSError, KeyError):
        raise click.BadParameter(
            f"{value!r} is not a time zone, such as Europe/Berlin, UTC or local"
        ) from None
    return lambda time: time.astimezone(zone)


def reference_of(value: str) -> Any:  # noqa: ANN401 - whatever has this name
    """
    Return what ``module:Name`` names. Modules of the working directory are found.

    Raises:
        click.BadParameter: The module or the name does not exist.

    """
    module, colon, name = value.partition(":")
    try:
        with modules_of_working_directory():
            found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        why = str(error) if colon else "expected module:Name"
        raise click.BadParameter(f"{value!r} names nothing: {why}") from error
    return found


@contextmanager
def modules_of_working_directory() -> Generator[None]:
    """
    Have modules of the working directory found that an option names.

    Last, so that no file there takes the place of a module that Python or a package imports.
    """
    sys.path.append("")
    try:
        yield
    finally:
        sys.path.remove("")


def methods_of_interface(interface: Any) -> dict[str, Method]:  # noqa: ANN401 - as it was named
    """
    Return the methods of what an option named.

    Raises:
        click.UsageError: The option does not name an interface.

    """
    from quire.calls.interfaces import methods_of
    from quire.types import names_around

    try:
        return methods_of(interface, names_around())
    except TypeError as error:
        raise click.UsageError(str(error)) from error


def replaced(ctx: click.Context, option: click.Parameter, value: object) -> None:
    """
    Refuse an option that was replaced.

    Raises:
        click.UsageError: The option was given.

    """
    if value is not None:
        now = {"_start": "--start is --from now", "_end": "--end is --to now, which ends before it"}
        raise click.UsageError(
            f"{now[option.name or '']}: give --from POINT and --to POINT, --to excluded; with"
            " --reverse the same messages are shown, the newest first",
            ctx,
        )


@contextmanager
def value_errors_as_usage() -> Generator[None]:
    """Turn errors about points, paces, conditions and formats into usage errors."""
    try:
        yield
    except (quire.errors.UnsupportedError, WhereError) as error:
        raise click.UsageError(str(error)) from error
    except ValueError as error:
        if isinstance(error, quire.QuireError):
            raise
        raise click.UsageError(str(error)) from error


def open_read_only(place: Place) -> quire.Queue:
    """Open a queue, or one roll file, read-only and without waiting for a lock."""
    return open_place(place, read_only=True)


def open_place(place: Place, *, create: bool = False, **options: Any) -> quire.Queue:  # noqa: ANN401
    """Open a queue with the options of :func:`quire.open`."""
    if isinstance(place, Path):
        opened = cast("Callable[..., quire.Queue]", quire.open)  # of the format that is there
        return opened(place, create=create, **options)
    options.pop("buffer_mode", None)  # a server has no ring for its clients
    return place.open(create=create, **options)


def open_journal(path: Path) -> quire.JournalQueue:
    """Open a Chronicle Queue, or one roll file, in the same way."""
    return quire.open(path, format="chronicle", read_only=True, create=False)
