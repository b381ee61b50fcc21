"""
Requests to the source of a queue, from another process.

A request is a file in the queue's directory: only users who may write to the directory, and so to
the queue, can ask. The source renames it when it begins, and answers in a file beside it. It
ignores expired requests, as the asking process no longer waits. Expiry uses the time since the
machine was started, because the wall clock may be set.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any, Final, cast

from quire._common.durable import SafeFolder
from quire._native import ReplicaStates, boot_id, boot_time_ns
from quire.errors import PeerSilentError, QuireError, ReplicationError
from quire.replication import standing

_LIMIT: Final = 16 << 10
_POLL_S: Final = 0.05
_TAKEN_S: Final = 5.0
_TAKEN_NS: Final = int(_TAKEN_S * 1e9)


class Mailbox:
    """
    The files of one kind of request.

    Args:
        verb: The requested action, for errors.
        name: The first part of the names of its files.
        fields: The fields of a request.

    """

    def __init__(self, verb: str, name: str, *fields: str) -> None:
        self._verb, self._request, self._answer = verb, f"{name}.json", f"{name}-answer.json"
        self._fields = {"id", "boot", "until_ns", *fields}

    def ask(
        self, path: str | PathLike[str], asked: Mapping[str, Any], *, to: str, waits_s: float
    ) -> Mapping[str, Any]:
        """
        Leave a request for the source, and return its answer.

        Args:
            path: The directory of the source's queue.
            asked: The content of the request.
            to: The sink that the request is about, for errors.
            waits_s: How long the source may take after it has seen the request.

        Raises:
            ReplicationError: No source took the request, or the source could not fulfil it.
            PeerSilentError: The source did not answer.

        """
        found = standing.read(path)
        if found is None or found.role != "source":
            raise _nobody(path, to)
        number = secrets.token_hex(8)
        until_ns = boot_time_ns() + _TAKEN_NS
        request = {"id": number, **asked, "boot": boot_id(), "until_ns": until_ns}
        with SafeFolder.at(path) as folder:
            folder.replace(self._request, json.dumps(request).encode())
            try:
                answer = self._awaited(folder, number, to, time.monotonic() + waits_s + _TAKEN_S)
            finally:
                self._withdraw(folder)
            folder.remove(self._answer)
        if answer.get("state") != "done":
            raise ReplicationError(f"the source did not {self._verb}: {answer.get('reason')}")
        return answer

    def _awaited(self, folder: SafeFolder, number: str, to: str, ends: float) -> Mapping[str, Any]:
        """Wait until the source has taken the request, and then for its answer."""
        taken_ends = time.monotonic() + _TAKEN_S
        is_taken = False
        while True:
            answer = _content(folder, self._answer)
            if answer is not None and answer.get("id") == number:
                return answer
            now = time.monotonic()
            if not is_taken:
                is_taken = not folder.has(self._request) or (
                    now >= taken_ends and not self._withdraw(folder)
                )
            if now >= taken_ends and not is_taken:
                raise _nobody(folder.path, to)
            if now >= ends:
                text = f"the source took the request to {self._verb}, and did not answer"
                raise PeerSilentError(f"{text}: path={fspath(folder.path)} to={to!r}")
            time.sleep(_POLL_S)

    def _withdraw(self, folder: SafeFolder) -> bool:
        """Withdraw a request; False if a source has already taken it."""
        temporary = folder.temporary(self._request)
        try:
            folder.move(self._request, folder, temporary)
        except FileNotFoundError:
            return False
        folder.remove(temporary)
        return True

    def take(
        self, folder: SafeFolder, is_for_here: Callable[[Mapping[str, Any]], bool]
    ) -> Mapping[str, Any] | None:
        """Return the request to a source; each request is returned only once."""
        found = _content(folder, self._request)
        if found is None or found.keys() != self._fields:
            return None
        number, until_ns = found["id"], found["until_ns"]
        is_now = isinstance(until_ns, int) and 0 <= until_ns - boot_time_ns() <= _TAKEN_NS
        is_now = is_now and found["boot"] == boot_id()
        if not isinstance(number, str) or not is_now or not is_for_here(found):
            return None
        return found if self._withdraw(folder) else None

    def answer(
        self, folder: SafeFolder, asked: Mapping[str, Any], found: Mapping[str, Any] | Exception
    ) -> None:
        """Answer a request with the result, or the reason for its failure."""
        if isinstance(found, Exception):
            found = {"state": "failed", "reason": str(found)}
        else:
            found = {"state": "done", **found}
        folder.replace(self._answer, json.dumps({"id": asked["id"], **found}).encode())


def _nobody(path: str | PathLike[str], to: str) -> ReplicationError:
    found = standing.read(path)
    role = "none" if found is None else found.role
    text = "no source of this queue took the request"
    states = ReplicaStates.open_existing(path, read_only=True)
    known = "" if states is None else " ".join(repr(name) for name, *_ in states.replicas())
    hint = f"no source runs here, or it has no such sink{known and f': it has had {known}'}"
    return ReplicationError(f"{text}: path={fspath(path)} role={role} to={to!r} ({hint})")


def _content(folder: SafeFolder, name: str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if there is no file with one."""
    try:
        found = json.loads(folder.read(name, _LIMIT))
    except (OSError, ValueError, RecursionError, QuireError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
