"""What `quire stat` says of a queue of a server: what the server knows of it."""

from __future__ import annotations

from typing import Any

from quire.cli.output.group_facts import facts_of_group
from quire.cli.output.stat_text import hex_text, time_text
from quire.errors import UnsupportedError
from quire.formats.adapters import count_of, periods_of
from quire.formats.protocols import AnyQueue
from quire.ranges.stored_positions import OUTPUT_POSITION, stored_position


def facts_of_remote(queue: AnyQueue) -> dict[str, Any]:
    """Return what is shown about a queue of a server, by the same names as for one of here."""
    remote: Any = queue
    counts = {cycle: count_of(queue, cycle) for cycle in remote.cycles}
    first, last = remote.first_index, remote.last_index
    return {
        "path": remote.path,
        **_properties(remote),
        "messages": sum(counts.values()),
        "first_index": None if first is None else hex_text(first),
        "last_index": None if last is None else hex_text(last),
        "size": None,
        "on_disk": None,
        "files": [],
        "cycles": [_cycle(queue, cycle, count) for cycle, count in counts.items()],
        "tailers": [
            _tailer(queue, name, index, counts)
            for name, index in remote.named_tailers()
            if name != OUTPUT_POSITION
        ],
        "groups": [facts_of_group(it) | {"wrong": None} for it in remote.groups()],
    }


def _properties(remote: Any) -> dict[str, Any]:  # noqa: ANN401 - a remote queue
    found: dict[str, Any] = {"format": remote._link.format}  # noqa: SLF001 - the package's own
    try:
        found["roll_cycle"] = remote.roll_cycle.name
        found |= {"epoch_ms": remote.epoch_ms, "time_zone": remote.roll_time_zone}
    except UnsupportedError:  # its format has no such thing, or it is known there
        found.pop("roll_cycle", None)
        return found
    return found | {"wire_type": remote.wire_type, "source_id": remote.source_id}


def _cycle(queue: AnyQueue, cycle: int, messages: int) -> dict[str, Any]:
    try:
        start = time_text(periods_of(queue).start_ms(cycle))
    except UnsupportedError:
        start = None
    return {"cycle": cycle, "from": start, "messages": messages}


def _tailer(queue: AnyQueue, name: str, index: int, counts: dict[int, int]) -> dict[str, Any]:
    cycle, sequence = stored_position(queue, index)
    later = sum(count for it, count in counts.items() if it > cycle)
    lag = later + max(0, counts.get(cycle, 0) - sequence)
    return {"name": name, "index": hex_text(index), "lag": lag}
