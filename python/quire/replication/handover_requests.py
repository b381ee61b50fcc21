"""Asking the source of a queue to hand over, from another process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from typing import Any, Final, NamedTuple

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire.replication.mailbox import Mailbox
from quire.replication.succession import Successor

MAILBOX: Final = Mailbox("hand over", "handover", "to", "timeout_s")
_LONGEST_S: Final = 1 << 30


class Request(NamedTuple):
    """
    A request to hand over.

    Attributes:
        asked: The content of the request, for the answer.
        to: The sink that will take over.
        timeout_s: How long the sink may take.

    """

    asked: Mapping[str, Any]
    to: str
    timeout_s: float


def handover(path: str | PathLike[str], to: str, *, timeout_s: float = 30.0) -> Successor:
    """
    Let the source of a queue, which may run in any process, hand over to one of its sinks.

    No message is lost: the source refuses appends from then on, the sink gets the messages it
    lacks, is promoted, and begins the next epoch. The old source follows it, if it serves. If the
    sink
    does not get all messages in time, the old source accepts appends again.

    Args:
        path: The directory of the source's queue.
        to: The name of the sink, or the address at which it will serve.
        timeout_s: How long appends under way may take to end, and the sink to get all messages;
            and how long it may take to be promoted.

    Returns:
        The sink, its epoch and its address.

    Raises:
        ReplicationError: No running source has such a sink, or the source did not hand over.
        PeerSilentError: The source did not answer.

    Examples:
        >>> import asyncio
        >>> from quire.replication import Sink, Source, handover
        >>> async def replicate(queue):
        ...     async with Source(queue) as source:
        ...         sink = Sink("successor", port=source.address[1], name="b")
        ...         async with sink:
        ...             await sink.stored(queue.last_index)
        ...             return await asyncio.to_thread(handover, "predecessor", "b")
        >>> with quire.open("predecessor") as queue:
        ...     _ = queue.appender().write_text("hello")
        ...     asyncio.run(replicate(queue))
        Successor(name='b', epoch=2, address=None)

    """
    arguments.seconds("timeout_s", timeout_s)
    asked = {"to": to, "timeout_s": timeout_s}
    answer = MAILBOX.ask(path, asked, to=to, waits_s=2 * timeout_s)
    address = answer.get("address")
    where = None if address is None else (str(address[0]), int(address[1]))
    return Successor(str(answer.get("name")), int(answer.get("epoch", 0)), where)


def take_request(folder: SafeFolder, sinks: Collection[str]) -> Request | None:
    """Return the request to a source with these sinks; each request is returned only once."""

    def is_for_here(asked: Mapping[str, Any]) -> bool:
        to, timeout_s = asked["to"], asked["timeout_s"]
        is_valid = isinstance(timeout_s, int | float) and 0 < timeout_s < _LONGEST_S
        return is_valid and isinstance(to, str) and to in sinks

    asked = MAILBOX.take(folder, is_for_here)
    return None if asked is None else Request(asked, asked["to"], asked["timeout_s"])
