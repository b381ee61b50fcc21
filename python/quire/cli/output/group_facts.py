"""What `quire groups`, `quire stat` and `quire top` say of consumer groups."""

from __future__ import annotations

from typing import Any

from quire.cli.exit_codes import error_text
from quire.cli.output.stat_text import hex_text
from quire.errors import QuireError
from quire.formats.adapters import adapter_of
from quire.formats.protocols import AnyQueue
from quire.groups.states import GroupState, side_files, state_of


def facts_of_group(group: GroupState) -> dict[str, Any]:
    """Return everything that is shown about a group."""
    return {
        "name": group.name,
        "lag": group.lag,
        "pending": group.pending,
        "oldest_s": rounded(group.oldest_age_s),
        "lowest_index": hex_text(group.lowest_index),
        "next_index": hex_text(group.next_index),
        "members": [member._asdict() for member in group.members],
    }


def facts_of_groups(queue: AnyQueue) -> list[dict[str, Any]]:
    """Return the same of each group of a queue; of one that cannot be read, what is wrong."""
    if adapter_of(queue).why_no_groups is not None:
        return []
    return [_facts(queue, file.stem) for file in side_files(queue.path)]


def _facts(queue: AnyQueue, name: str) -> dict[str, Any]:
    try:
        return facts_of_group(state_of(queue, name)) | {"wrong": None}
    except (QuireError, OSError) as error:
        unknown = dict.fromkeys(facts_of_group(GroupState(name, 0, 0, 0, (), 0, None)))
        return unknown | {"name": name, "wrong": error_text(error)}


def members_text(members: list[dict[str, Any]]) -> str:
    """Return the members of a group on one line."""
    return ", ".join(f"{it['name']}:{it['pid']} {it['messages']}" for it in members)


def rounded(seconds: float | None) -> float | None:
    """Return seconds as they are shown."""
    return None if seconds is None else round(seconds, 3)
