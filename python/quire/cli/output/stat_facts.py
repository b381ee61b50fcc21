"""What `quire stat` says of a queue, as in JSON: the same for every format, and what it adds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from math import isinf
from pathlib import Path
from typing import Any, Final

import quire
from quire import _native
from quire._common.roll_file_names import is_compressed
from quire.cli.output.group_facts import facts_of_groups
from quire.cli.output.stat_text import hex_text, sizes_of, time_text
from quire.errors import CorruptError, QuireError
from quire.formats.adapter import End, Piece
from quire.formats.adapters import adapter_of, journal_of, numbering_of, periods_of, tailer_of
from quire.formats.journal import held_lock
from quire.formats.protocols import AnyQueue
from quire.handles.journal.replicas import Replica, replicas_of
from quire.maintenance.files import identities_of, users_of
from quire.opening.discovery import TABLE
from quire.ranges.stored_positions import OUTPUT_POSITION, stored_position
from quire.replication import standing
from quire.write_lock import lock_keys

_ENDED: Final = {"eof", "compressed"}
_NOT_KNOWN: Final[dict[str, Any]] = {
    "role": None,
    "epoch": None,
    "acknowledged_index": None,
    "in_sync": [],
    "replicas": [],
}


def facts_of(queue: AnyQueue) -> dict[str, Any]:
    """Return everything that is shown about a queue."""
    adapter = adapter_of(queue)
    pieces = [*adapter.pieces(queue)]
    with tailer_of(queue) as tailer:
        files = [_file(queue, piece, tailer) for piece in pieces]
    facts = {
        "path": queue.path,
        **adapter.properties(queue),
        "messages": sum(file["messages"] or 0 for file in files),
        **_indexes(queue, files),
        "size": sum(file["size"] for file in files),
        "on_disk": sum(file["on_disk"] for file in files),
        "files": files,
    }
    if adapter.has_tailer_names:
        named = [it for it in adapter.named_tailers(queue) if it[0] != OUTPUT_POSITION]
        facts["tailers"] = [_tailer(queue, name, index, files) for name, index in named]
    if adapter.why_no_groups is None:
        facts["groups"] = facts_of_groups(queue)
    if (journal := journal_of(queue)) is not None:
        facts |= _of_table(journal)
    return facts | {"processes": _processes(queue, pieces)}


def _indexes(queue: AnyQueue, files: Sequence[dict[str, Any]]) -> dict[str, str | None]:
    """Return the first and the last index; None where there is none, or damage hides it."""
    numbering = numbering_of(queue)
    first = last = None
    if numbering.is_dense:  # damaged files are skipped
        filled = [(it["cycle"], it["messages"]) for it in files if it["messages"]]
        if filled:
            first = numbering.to_index(filled[0][0], 0)
            last = numbering.to_index(filled[-1][0], filled[-1][1] - 1)
    else:
        with suppress(CorruptError):
            first = queue.first_index
        with suppress(CorruptError):
            last = queue.last_index
    return {
        "first_index": None if first is None else hex_text(first),
        "last_index": None if last is None else hex_text(last),
    }


def _file(queue: AnyQueue, piece: Piece, tailer: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what is shown of a file, or of the files of a cycle."""
    adapter, cycle = adapter_of(queue), piece.cycle
    end, rate, wrong = None, None, None
    try:
        if cycle is not None:
            end = adapter.found_end(queue, cycle)
        if cycle is not None and end is not None and adapter.is_wire:
            rate = _rate(queue, tailer, piece, end.past)
    except CorruptError as error:
        wrong = str(error)
    facts: dict[str, Any] = {"name": piece.name, "cycle": cycle}
    if cycle is not None and adapter.has_cycles:
        facts["from"] = time_text(periods_of(queue).start_ms(cycle))
    facts["messages"] = None if cycle is None else 0 if end is None else end.past
    if adapter.is_wire:
        facts |= _of_roll_file(queue, end, rate, _standing_of(piece, end, wrong))
    return facts | {**piece.facts, **_summed(piece.files), "wrong": wrong}


def _standing_of(piece: Piece, end: End | None, wrong: str | None) -> str:
    if wrong is not None:
        return "damaged"
    if end is None:
        return "not ready"
    if is_compressed(piece.name):
        return "compressed"
    return "eof" if end.ended else "open"


def _of_roll_file(
    queue: AnyQueue, end: End | None, rate: float | None, state: str
) -> dict[str, Any]:
    """Return how far a file is used, whether it has ended, and the rates of its messages."""
    position, past, _ = end or End(0, 0, ended=False)
    mean = past * 1000 / periods_of(queue).length_ms
    return {
        "per_second": rate,
        "mean_per_second": mean if state in _ENDED else None,
        "used": position,
        "state": state,
    }


def _rate(queue: AnyQueue, tailer: Any, piece: Piece, messages: int) -> float | None:  # noqa: ANN401
    """Return messages per second between the first and the last; None if they have no times."""
    if messages <= 1 or is_compressed(piece.name):  # whose times would take decompressing it
        return None
    first_index = numbering_of(queue).to_index(piece.cycle or 0, 0)
    if (first := written_ns(tailer, first_index)) is None:
        return None
    last = written_ns(tailer, first_index + messages - 1)
    if last is None or first >= last:
        return None  # the clock was reset in between
    return (messages - 1) * 1e9 / (last - first)


def written_ns(tailer: quire.JournalTailer, index: int) -> int | None:
    """Return when a message was written, by its history."""
    with suppress(quire.errors.WireError, quire.errors.EncryptionError):
        if tailer.move_to_index(index) and tailer.read_bytes() is not None:
            history = tailer.history
            return history.timings[-1] if history is not None and history.timings else None
    return None


def _summed(files: Sequence[Path]) -> dict[str, int]:
    total = {"size": 0, "on_disk": 0}
    for file in files:
        with suppress(FileNotFoundError):  # removed a moment ago
            for name, value in sizes_of(file).items():
                total[name] += value
    return total


def _of_table(queue: _native.Queue) -> dict[str, Any]:
    """Return what the table of a queue holds, and who has its locks."""
    table = Path(queue.path) / TABLE
    used_percent, is_almost_full = queue._table_used() or (None, False)  # noqa: SLF001 - the package's own
    return {
        "table": sizes_of(table) if table.exists() else None,
        "table_used_percent": used_percent,
        "table_is_almost_full": is_almost_full,
        "ring": _ring(queue),
        "replication": _replication(queue),
        "locks": {key: _lock(queue, key) for key in lock_keys(queue)},
        "keys": dict(queue.table_entries()),
    }


def _ring(queue: _native.Queue) -> dict[str, Any] | None:
    """Return what waits in the ring of asynchronous appends; None without a ring."""
    if not Path(queue.path).is_dir():
        return None
    try:
        found = _native.ring_stats(queue.path)  # queue.metrics() imports more than stat needs
    except quire.QuireError as error:
        return {"pending": None, "used": None, "wrong": str(error)}
    if found is None:
        return None
    _, used, _, pending, _ = found
    return {"pending": pending, "used": used, "wrong": None}


def _replication(queue: _native.Queue) -> dict[str, Any] | None:
    """Return what the queue is in a replication; None if it is in none."""
    if not Path(queue.path).is_dir():
        return None
    try:
        found = standing.read(queue.path)
    except CorruptError as error:
        return {**_NOT_KNOWN, "wrong": str(error)}
    if found is None:
        return None
    index = queue.last_acknowledged_index
    acknowledged = None if index is None else hex_text(index)
    known = {"role": found.role, "epoch": found.epoch, "acknowledged_index": acknowledged}
    try:
        replicas = replicas_of(queue)
    except QuireError as error:
        return {**_NOT_KNOWN, **known, "wrong": str(error)}
    in_sync = [it.name for it in replicas if it.in_sync]
    rows = [_replica(it) for it in replicas]
    return {**known, "in_sync": in_sync, "replicas": rows, "wrong": None}


def _replica(replica: Replica) -> dict[str, Any]:
    index = replica.acknowledged_index
    return {
        **replica._asdict(),
        "acknowledged_index": None if index is None else hex_text(index),
        "lag_s": None if isinf(replica.lag_s) else replica.lag_s,
    }


def _tailer(queue: AnyQueue, name: str, index: int, files: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a tailer's place, and how many messages it has not read."""
    cycle, sequence = stored_position(queue, index)
    lag = sum(file["messages"] for file in files if file["cycle"] > cycle)
    own = (file["messages"] for file in files if file["cycle"] == cycle)
    return {
        "name": name,
        "index": hex_text(index),
        "lag": lag + sum(max(0, messages - sequence) for messages in own),
    }


def _lock(queue: _native.Queue, key: str) -> dict[str, Any] | None:
    """Return the holder of a lock; None while it is free."""
    lock = held_lock(queue, key)
    if lock is None:
        return None
    since = None if lock.since_ms is None else time_text(lock.since_ms)
    return {"pid": lock.pid, "lives": lock.alive, "since": since}


def _processes(queue: AnyQueue, pieces: list[Piece]) -> list[dict[str, Any]] | None:
    """Return which other processes have files of the queue open; None where nothing says it."""
    files = [file for piece in pieces for file in piece.files]
    try:
        users, _ = users_of(identities_of([*files, Path(queue.path) / TABLE]))
    except quire.errors.UnsupportedError:
        return None
    counts = Counter(user for found in users.values() for user in found)
    return [
        {"pid": user.pid, "command": user.command, "files": count}
        for user, count in sorted(counts.items())
        if user.pid != os.getpid()
    ]
