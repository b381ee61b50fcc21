"""The layout of a queue, as a source sends it: a replica is created with the same one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from quire._native import Queue, RollCycle
from quire.errors import ReplicationError, UnsupportedError
from quire.opening.options import LayoutOptions, RollOptions

_DAY_MS: Final = 86_400_000
_DECIDED_BY_SOURCE: Final = (
    *("roll_cycle", "epoch_ms", "time_zone", "roll", "wire_type", "source_id"),
    *("block_bytes", "format", "read_only", "create", "clock", "buffer_mode"),
)
_MUST_AGREE: Final = ("pattern", "length_ms", "epoch_ms", "sequences", "wire_type")


def of_queue(queue: Queue) -> dict[str, Any]:
    """Return the layout that a sink needs to know."""
    roll = queue.roll_cycle
    index_count, index_spacing = queue._index_shape  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return {
        "roll_cycle": roll.name,
        "pattern": roll.pattern,
        "length_ms": roll.length_ms,
        "sequences": roll.max_messages,
        "epoch_ms": queue.epoch_ms,
        "time_zone": queue.roll_time_zone,
        # The files of a queue that was created as BINARY have the other name, as Java's.
        "wire_type": "BINARY_LIGHT" if queue.wire_type == "BINARY" else queue.wire_type,
        "source_id": queue.source_id,
        "block_bytes": queue.block_bytes,
        "index_count": index_count,
        "index_spacing": index_spacing,
    }


def sent_in(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    Return the layout that a source sent.

    Raises:
        ReplicationError: The source's facts have no layout.

    """
    found = facts.get("layout")
    if isinstance(found, Mapping):
        return cast("Mapping[str, Any]", found)
    raise _refused("layout", "an object", found)


def check_same(queue: Queue, found: Mapping[str, Any]) -> None:
    """
    Check that a replica has the layout of its source.

    Raises:
        ReplicationError: The layouts differ, so that indexes would differ, too.

    """
    own = of_queue(queue)
    different = [key for key in _MUST_AGREE if found.get(key) != own[key]]
    if different:
        shown = " ".join(f"{key}={own[key]!r} source_{key}={found.get(key)!r}" for key in different)
        raise ReplicationError(f"the replica is laid out differently: path={queue.path} {shown}")


def check_own(given: Mapping[str, Any]) -> None:
    """
    Check that the options of a replica include none that its source decides.

    Raises:
        UnsupportedError: An option was given that the source decides.

    """
    for each in _DECIDED_BY_SOURCE:
        if each in given:
            raise UnsupportedError(f"not an option of a copy: {each}={given[each]!r}")
    own = given.get("layout") or LayoutOptions()
    for each in ("index_count", "index_spacing"):
        if getattr(own, each) is not None:
            raise UnsupportedError(f"not an option of a copy: {each}={getattr(own, each)!r}")


def options_of(found: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the options of :func:`quire.open` that create a replica.

    Args:
        found: The layout that the source sent.
        given: The replica's other options.

    Raises:
        ReplicationError: A value is missing, or no queue can have it.

    """
    epoch_ms, zone = _whole(found, "epoch_ms"), _text(found, "time_zone")
    count, spacing = _whole(found, "index_count"), _whole(found, "index_spacing")
    try:
        own = given.get("layout") or LayoutOptions()
        shape = replace(own, index_count=count, index_spacing=spacing)
    except ValueError as error:
        raise _refused("index_count and index_spacing", f"valid ones ({error})", count) from None
    options = {
        **given,
        "roll_cycle": _roll_cycle(found),
        "epoch_ms": epoch_ms,
        "source_id": _whole(found, "source_id"),
        "block_bytes": _whole(found, "block_bytes"),
        "wire_type": _text(found, "wire_type"),
        "layout": shape,
    }
    if zone == "UTC":
        return options
    # In another zone the epoch is that of a day, and the time of day an option of its own.
    days_ms, minutes = epoch_ms - epoch_ms % _DAY_MS, epoch_ms % _DAY_MS // 60_000
    roll = RollOptions(roll_time=f"{minutes // 60:02}:{minutes % 60:02}")
    return {**options, "epoch_ms": days_ms, "time_zone": zone, "roll": roll}


def _roll_cycle(found: Mapping[str, Any]) -> RollCycle:
    name = _text(found, "roll_cycle")
    try:
        if name in {roll.name for roll in RollCycle.all()}:
            return RollCycle(name)
        return RollCycle(pattern=_text(found, "pattern"), length_ms=_whole(found, "length_ms"))
    except ValueError as error:
        raise ReplicationError(
            f"the source has an unknown roll cycle: reason={str(error)!r}"
        ) from None


def _whole(found: Mapping[str, Any], key: str) -> int:
    value = found.get(key)
    if type(value) is not int:
        raise _refused(key, "an integer", value)
    return value


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise _refused(key, "text", value)
    return value


def _refused(key: str, expected: str, value: object) -> ReplicationError:
    text = f"the source did not send the layout of its queue: expected {expected}"
    return ReplicationError(f"{text}: key={key} found={value!r}")
