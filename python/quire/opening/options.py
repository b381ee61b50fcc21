"""The options of ``quire.open``: how each is checked, and which format has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from quire._common import arguments
from quire._common.watching import Watcher
from quire._native import ManualClock, RollCycle
from quire.errors import NotAQueueError, UnsupportedError
from quire.formats import detection
from quire.formats.detection import Format


def _clock(name: str, found: object) -> object:
    if isinstance(found, ManualClock) or callable(found):
        return found
    raise arguments.refusal(name, "a quire.ManualClock, a callable or None", found)


def _roll_cycle(name: str, found: object) -> str | RollCycle:
    if not isinstance(found, str | RollCycle):
        raise arguments.refusal(name, "the name of a roll cycle, or a quire.RollCycle", found)
    return found


def one_zone(time_zone: object, roll_time_zone: object) -> object:
    """Return the zone that was given, under whichever of its names."""
    given = [zone for zone in (time_zone, roll_time_zone) if zone is not None]
    if len(given) > 1 and given[0] != given[1]:
        raise ValueError(
            f"two names of one option: time_zone={arguments.shown(time_zone)}"
            f" roll_time_zone={arguments.shown(roll_time_zone)}"
        )
    return given[0] if given else None


def _watchers(name: str, found: object) -> tuple[Watcher, ...]:
    given = (found,) if isinstance(found, Watcher) else found
    if not isinstance(given, list | tuple):
        raise arguments.refusal(name, "a quire.Retention, or a list of them", found)
    rules = cast("Sequence[object]", given)
    for rule in rules:
        if not isinstance(rule, Watcher):
            raise arguments.refusal(name, "a quire.Retention, or a list of them", rule)
    return cast("tuple[Watcher, ...]", tuple(rules))


def microseconds(name: str, found: object) -> int:
    """Check seconds, an hour at most, and return them as microseconds."""
    seconds = arguments.seconds(name, found)
    if not seconds <= _LONGEST_COMMIT_S:
        raise arguments.out_of_range(name, "at most 3600 seconds", found)
    return round(seconds * 1e6)


_LONGEST_COMMIT_S = 3600
_LISTENER = arguments.function("a callable of a cycle and a path, or None")
_UNSIGNED = arguments.whole(0, 2**32 - 1)
_TEXT = arguments.optional(arguments.text)

CHECKS: dict[str, arguments.Check] = {
    "roll_cycle": arguments.optional(_roll_cycle),
    "read_only": arguments.flag,
    "create": arguments.flag,
    "clock": arguments.optional(_clock),
    "block_bytes": arguments.optional(arguments.whole(0, 2**63 - 1)),
    "force_unlock": arguments.text,
    "double_buffer": arguments.flag,
    "epoch_ms": arguments.optional(arguments.whole(-(2**63), 2**63 - 1)),
    "roll_time": _TEXT,
    "roll_time_zone": _TEXT,
    "index_count": arguments.optional(_UNSIGNED),
    "index_spacing": arguments.optional(_UNSIGNED),
    "wire_type": _TEXT,
    "source_id": arguments.whole(-(2**31), 2**31 - 1),
    "file_mode": arguments.whole(0, 0o7777),
    "allow_network": arguments.flag,
    "pretouch": arguments.flag,
    "low_space_percent": arguments.whole(0, 255),
    "metrics": arguments.optional(arguments.flag),
    "time_index": arguments.flag,
    "retention": arguments.optional(_watchers),
    "on_file_acquired": arguments.optional(_LISTENER),
    "on_file_released": arguments.optional(_LISTENER),
    "durability": arguments.one_of("process", "batch", "each"),
    "buffer_capacity_bytes": arguments.optional(arguments.whole(1, 2**30)),
    "on_full": arguments.one_of("block", "raise", "grow"),
    "page_bytes": arguments.optional(arguments.whole(0, 2**63 - 1)),
    "cycle_format": _TEXT,
    "cycle_length_ms": arguments.optional(arguments.whole(1, 2**31 - 1)),
    "cycle_time_zone": _TEXT,
    "entries_per_cycle": arguments.optional(arguments.whole(0, 2**63 - 1)),
    "tid_bits": arguments.optional(_UNSIGNED),
    "index_block_bytes": arguments.optional(arguments.whole(0, 2**63 - 1)),
    "data_block_bytes": arguments.optional(arguments.whole(0, 2**63 - 1)),
    "synchronous": arguments.flag,
    "consumption": arguments.one_of("topic", "queue"),
}
# The options that each format knows; ``path`` and ``format`` are everybody's.
QUICK_QUEUE = {"read_only", "create", "page_bytes", "file_mode", "allow_network"}
VANILLA = {
    "read_only",
    "create",
    "clock",
    "roll_cycle",
    "cycle_format",
    "cycle_length_ms",
    "cycle_time_zone",
    "entries_per_cycle",
    "tid_bits",
    "index_block_bytes",
    "data_block_bytes",
    "synchronous",
    "consumption",
    "linger_ms",
    "file_mode",
    "allow_network",
}
INDEXED = {"read_only", "create"}
_OF_OTHERS = (QUICK_QUEUE | VANILLA) - {"read_only", "create", "clock", "roll_cycle"}
CHRONICLE = ({*CHECKS} - _OF_OTHERS) | {
    "file_mode",
    "allow_network",
    "timeout_ms",
    "eof_grace_ms",
    "group_commit_us",
    "max_clock_ahead_ms",
    "read_buffer_mode",
    "write_buffer_mode",
}


def format_to_open(path: str, asked: str | None, *, may_create: bool) -> Format:
    """
    Return the format of the queue at *path*, or of a new one.

    Raises:
        NotAQueueError: *path* holds a queue of another format than *asked*, a part of a queue or,
            unless *may_create*, a directory of queues.

    """
    arguments.optional(arguments.one_of(*detection.FORMATS, detection.INDEXED))("format", asked)
    found = detection.format_of(path)
    if found == detection.INDEXED:
        # Two files beside a path that is free.
        return cast("Format", asked or found)
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
    return cast("Format", found or asked or detection.CHRONICLE)


_MODES: Final = ("none", "async", "copy")


def buffering(both: str | None, read: str | None, write: str | None) -> dict[str, object]:
    """Check the buffer modes and return the options that hold, those that are off as None."""
    modes = {"buffer_mode": both, "read_buffer_mode": read, "write_buffer_mode": write}
    for name, mode in modes.items():
        arguments.optional(arguments.one_of(*_MODES))(name, mode)
        if mode == "copy":
            raise UnsupportedError(
                f"{name}='copy': such buffers serve encryption, which Quire does not have"
            )
    modes |= {"read_buffer_mode": read, "write_buffer_mode": write or both}
    return {name: mode if mode == "async" else None for name, mode in modes.items()}


def refuse_idle(options: Mapping[str, object]) -> None:
    """Refuse an option of a ring, or of syncing, where the mode that uses it was not asked for."""
    ring = options["read_buffer_mode"] or options["write_buffer_mode"]
    if not ring and options["buffer_capacity_bytes"] is not None:
        capacity = options["buffer_capacity_bytes"]
        raise ValueError(f"buffer_capacity_bytes={capacity} needs buffer_mode='async'")
    if not ring and options["on_full"] != "block":
        raise ValueError(f"on_full={options['on_full']!r} needs buffer_mode='async'")
    if options["durability"] == "process" and options["group_commit_us"] is not None:
        raise ValueError("group_commit_s needs durability='batch' or 'each'")
