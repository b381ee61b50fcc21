"""
Asking the source of a queue to hand over, from another process.

A request is the file ``handover.json`` in the queue's directory: only users who may write to that,
and so to the queue, can ask. The source renames it when it begins, and answers in
``handover-answer.json``.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from typing import Any, Final, cast

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire._native import ReplicaStates
from quire.errors import PeerSilentError, QuireError, ReplicationError
from quire.replication import standing
from quire.replication.succession import Successor

REQUEST: Final = "handover.json"
ANSWER: Final = "handover-answer.json"
_LIMIT: Final = 16 << 10
_POLL_S: Final = 0.05
_TAKEN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Request:
    """
    What is asked of a source.

    Attributes:
        id: What its answer is known by.
        to: The sink that shall take over.
        timeout_s: How long the sink may take.
        until: When nobody waits for an answer any more, in seconds since 1970.

    """

    id: str
    to: str
    timeout_s: float
    until: float


def handover(path: str | PathLike[str], to: str, *, timeout_s: float = 30.0) -> Successor:
    """
    Have the source of a queue, which runs in any process, hand over to one of its sinks.

    Nothing is lost: nobody may append from then on, the sink gets what it lacks, is promoted, and
    begins the next epoch. The old source follows it, if it serves. If the sink does not get all
    messages in time, appends go on at the old source.

    Args:
        path: The directory of the source's queue.
        to: The name of the sink, or the address where it will serve.
        timeout_s: How long the sink may take to get all messages, and to be promoted.

    Returns:
        The sink, its epoch and where it serves.

    Raises:
        ReplicationError: No source runs that has such a sink, or it did not hand over.
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
    found = standing.read(path)
    if found is None or found.role != "source":
        raise _nobody(path, to)
    waits_s = 2 * timeout_s + _TAKEN_S
    request = Request(secrets.token_hex(8), to, timeout_s, time.time() + _TAKEN_S)
    with SafeFolder.at(path) as folder:
        folder.replace(REQUEST, json.dumps(asdict(request)).encode())
        try:
            answer = _awaited(folder, request, time.monotonic() + waits_s)
        finally:
            _withdraw(folder)
        folder.remove(ANSWER)
    if answer.get("state") != "done":
        raise ReplicationError(f"the source did not hand over: {answer.get('reason')}")
    address = answer.get("address")
    where = None if address is None else (str(address[0]), int(address[1]))
    return Successor(str(answer.get("name")), int(answer.get("epoch", 0)), where)


def _awaited(folder: SafeFolder, request: Request, ends: float) -> Mapping[str, Any]:
    """Wait until the source has taken the request, and then for its answer."""
    taken_ends = time.monotonic() + _TAKEN_S
    is_taken = False
    while True:
        answer = _content(folder, ANSWER)
        if answer is not None and answer.get("id") == request.id:
            return answer
        now = time.monotonic()
        if not is_taken:
            is_taken = not folder.has(REQUEST) or (now >= taken_ends and not _withdraw(folder))
        if now >= taken_ends and not is_taken:
            raise _nobody(folder.path, request.to)
        if now >= ends:
            text = "the source began to hand over, and did not answer"
            raise PeerSilentError(f"{text}: path={fspath(folder.path)} to={request.to!r}")
        time.sleep(_POLL_S)


def _nobody(path: str | PathLike[str], to: str) -> ReplicationError:
    found = standing.read(path)
    role = "none" if found is None else found.role
    text = "no source of this queue took the request"
    states = ReplicaStates.open_existing(path, read_only=True)
    known = "" if states is None else " ".join(repr(name) for name, *_ in states.replicas())
    hint = f"no source runs here, or it has no such sink{known and f': it has had {known}'}"
    return ReplicationError(f"{text}: path={fspath(path)} role={role} to={to!r} ({hint})")


def _withdraw(folder: SafeFolder) -> bool:
    """Take a request away; False if it is gone, since a source has taken it."""
    temporary = folder.temporary(REQUEST)
    try:
        folder.move(REQUEST, folder, temporary)
    except FileNotFoundError:
        return False
    folder.remove(temporary)
    return True


def take_request(folder: SafeFolder, sinks: Collection[str]) -> Request | None:
    """Return what is asked of a source with these sinks, once: nobody else gets it then."""
    found = _content(folder, REQUEST)
    if found is None:
        return None
    try:
        request = Request(**found)
        is_for_here = request.to in sinks and time.time() <= request.until
        is_valid = 0 < request.timeout_s < 1 << 30 and type(found["id"]) is str
    except TypeError:
        return None
    return request if is_for_here and is_valid and _withdraw(folder) else None


def done(successor: Successor) -> Mapping[str, Any]:
    """Return the answer of a source that has handed over."""
    return {"state": "done", **successor._asdict()}


def failed(error: Exception) -> Mapping[str, Any]:
    """Return the answer of a source that has not."""
    return {"state": "failed", "reason": str(error)}


def give_answer(folder: SafeFolder, request: Request, answer: Mapping[str, Any]) -> None:
    """Answer a request."""
    folder.replace(ANSWER, json.dumps({"id": request.id, **answer}).encode())


def _content(folder: SafeFolder, name: str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if there is no file with one."""
    try:
        found = json.loads(folder.read(name, _LIMIT))
    except (OSError, ValueError, RecursionError, QuireError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
