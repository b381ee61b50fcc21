"""
QUIRE.SINK: batches that are staged in parts, and then appended completely and exactly once.

A part belongs to its connection until it is closed. COMMIT appends the parts of a batch, and may be
repeated: see ``quire.staged.commits``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Final

from quire.errors import RefusedError
from quire.server.answers import OK
from quire.server.client_session import Later
from quire.server.commands.command_table import Arguments, command
from quire.server.commands.members import invalid
from quire.server.commands.whole_messages import column
from quire.server.commands.writing import writable
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire.server.answers import Answer
    from quire.server.client_session import Outcome, Session
    from quire.server.served_queue import ServedQueue
    from quire.staged.staging import PartWriter

_LOCK_TIMEOUT_S: Final = 2.0
_numbers = count(1)


class _Part:
    """A part that a client sends; removed when the connection ends, unless it was closed."""

    def __init__(self, writer: PartWriter) -> None:
        self._writer = writer

    def write(self, offsets: bytes, data: bytes) -> Answer:
        """
        Add messages.

        Raises:
            ValueError: The offsets are not strictly ascending, as with an empty message.

        """
        import pyarrow as pa

        places = memoryview(offsets).cast("i")
        if any(end <= start for start, end in pairwise(places)):
            raise ValueError("the offsets are not ascending: a message must have at least one byte")
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        found: Any = pa.Array.from_buffers(pa.binary(), len(places) - 1, buffers)
        self._writer.write(found.cast(pa.large_binary()))
        return OK

    def finish(self) -> Answer:
        """Sync the part; return its file and the number of its rows, or null without rows."""
        with self._writer:
            part = self._writer.finish()
        return None if part is None else [part.file.encode(), part.rows]

    def close(self) -> None:
        """Remove the part."""
        self._writer.__exit__(GeneratorExit, None, None)


@command("QUIRE.SINK", -4, "write", keys=(2, 2, 1))
def sink(session: Session, request: Sequence[bytes]) -> Outcome:
    """Stage and append batches: OPEN, WRITE, CLOSE, COMMIT or ABORT."""
    found = writable(session, topic_of(request[2]), creates=False)
    if found is None:
        raise RefusedError(f"NOTAQUEUE no such queue: name={topic_of(request[2])}")
    if found.journal is None:
        raise RefusedError(
            f"UNSUPPORTED batches can be appended only to a Chronicle Queue:"
            f" name={found.topic} format={found.format}"
        )
    given = Arguments(request, 3)
    match request[1].upper():
        case b"OPEN":
            return _open(session, found, given)
        case b"WRITE":
            part, messages = _held(session, found, given), column(given)
            return _later(lambda: part.write(*messages))
        case b"CLOSE":
            part = _held(session, found, given, take=True)
            given.end()
            return _later(part.finish)
        case b"COMMIT":
            return _commit(found, given)
        case b"ABORT":
            return _abort(found, given)
        case _:
            raise RefusedError("syntax error")


def _later(call: Callable[[], Answer]) -> Later:
    """Run a call in a thread; a `ValueError` is the client's error."""

    def answer() -> Answer:
        try:
            return call()
        except ValueError as error:
            raise invalid(error) from None

    return Later(answer)


def _open(session: Session, found: ServedQueue, given: Arguments) -> Outcome:
    from quire.staged.batch_target import Target
    from quire.staged.staging import PartWriter

    writer, batch = _batch(given)
    partition = given.whole("partition")
    given.end()
    session.check_held()
    number = next(_numbers)

    def answer() -> Answer:
        target = Target(str(found.queue.path))
        place = target.staging.batch(writer, batch)
        part = _Part(PartWriter(place, partition, found.longest, target.ring()))
        session.hold(("part", found.topic, number), part, found.topic)
        return number

    return _later(answer)


def _batch(given: Arguments) -> tuple[str, int]:
    """Take the writer and the number of the batch."""
    from quire.staged.staging import WRITER

    writer = given.next().decode("ascii", "replace")
    if not WRITER.fullmatch(writer):
        raise RefusedError(
            "INVALID expected a writer's name of letters, digits, '_', '.' and '-', except lock:"
            f" writer={writer!r:.80}"
        )
    return writer, given.whole("batch")


def _held(session: Session, found: ServedQueue, given: Arguments, *, take: bool = False) -> _Part:
    key = ("part", found.topic, given.whole("part"))
    part = session.held.pop(key, None) if take else session.held.get(key)
    if not isinstance(part, _Part):
        raise RefusedError(f"CLOSED no such open part of this connection: part={key[2]}")
    return part


def _commit(found: ServedQueue, given: Arguments) -> Outcome:
    """Append a batch of parts, each given by file, partition and number of rows."""
    from quire.staged.batch_target import Target
    from quire.staged.commits import commit
    from quire.staged.sink_manifest import FILE
    from quire.staged.staging import Part

    writer, batch = _batch(given)
    is_synced, parts = not given.takes("NOSYNC"), list[Part]()
    while given:
        file = given.next().decode("ascii", "replace")
        if not FILE.fullmatch(file):
            raise RefusedError(f"INVALID not a part: file={file!r:.80}")
        parts.append(Part(file, given.whole("partition"), given.whole("rows", least=1)))

    def answer() -> Answer:
        path = str(found.queue.path)
        target = Target.existing(path, sync=is_synced, lock_timeout_s=_LOCK_TIMEOUT_S)
        return int(commit(target, writer, batch, parts))

    return _later(answer)


def _abort(found: ServedQueue, given: Arguments) -> Outcome:
    from quire.staged.batch_target import Target
    from quire.staged.commits import abort

    writer, batch = _batch(given)
    given.end()

    def answer() -> Answer:
        abort(Target(str(found.queue.path)), writer, batch)
        return OK

    return _later(answer)
