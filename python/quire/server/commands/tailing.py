"""QUIRE.TAILER: tailers whose position the queue keeps under a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from quire.errors import RefusedError, TailerInUseError
from quire.formats.adapters import adapter_of
from quire.server.answers import OK
from quire.server.client_session import Later
from quire.server.client_shares import check_length, check_room
from quire.server.commands.command_table import Arguments, command
from quire.server.commands.whole_messages import known
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire.server.answers import Answer
    from quire.server.client_session import Outcome, Session
    from quire.server.served_queue import ServedQueue

_LONGEST_NAME: Final = 64


@command("QUIRE.TAILER", -3, "write", keys=(2, 2, 1))
def tailer(session: Session, request: Sequence[bytes]) -> Outcome:
    """Use a named tailer: OPEN, COMMIT, CLOSE, LIST, DELETE or RENAME."""
    what, topic = request[1].upper(), topic_of(request[2])
    is_change = what in {b"DELETE", b"RENAME"}
    found = known(session, topic, "manage" if is_change else "read")
    given = Arguments(request, 3)
    if what == b"LIST":
        given.end()
        return [
            [name.encode(), at] for name, at in adapter_of(found.queue).named_tailers(found.queue)
        ]
    name = _text(given)
    match what:
        case b"OPEN":
            return _open(session, found, name, given)
        case b"COMMIT":
            return _commit(_held(session, topic, name), given.whole("index"))
        case b"CLOSE":
            session.held.pop(("tailer", topic, name), _NOTHING).close()
            return OK
        case b"DELETE" | b"RENAME":
            new = None if what == b"DELETE" else _text(given)
            if new is not None:
                _check_new(new)
            return _managed(found, name, new)
        case _:
            raise RefusedError("syntax error")


class _Nothing:
    def close(self) -> None:
        """Do nothing: there is nothing to close."""


_NOTHING = _Nothing()


def _text(given: Arguments) -> str:
    try:
        return given.next().decode()
    except UnicodeDecodeError:
        raise RefusedError("INVALID the name of a tailer is not UTF-8") from None


def _check_new(name: str) -> None:
    """Check the name of a new tailer: all names share one file of the queue."""
    check_length("the name of a tailer", name.encode(), _LONGEST_NAME)


def _open(session: Session, found: ServedQueue, name: str, given: Arguments) -> Outcome:
    key = ("tailer", found.topic, name)
    if key not in session.held:
        session.check_held()
    is_shared = given.takes("SHARED")
    given.end()

    def answer() -> Answer:
        session.held.pop(key, _NOTHING).close()
        names = {it for it, _ in adapter_of(found.queue).named_tailers(found.queue)}
        if name not in names:
            _check_new(name)
        check_room("named tailers", name, names, session.context.limits.kept_names)
        try:
            opened = found.queue.tailer(name, **_options(found, is_shared=is_shared))
        except ValueError as error:
            raise RefusedError(f"INVALID {error}") from None
        except TailerInUseError:
            raise RefusedError(
                f"TAILERINUSE the named tailer is in use: tailer={name} queue={found.topic} (close"
                " it where it is open, or open it with shared=True, as Java's are)"
            ) from None
        session.hold(key, opened, found.topic)
        return opened.index

    return Later(answer)


def _options(found: ServedQueue, *, is_shared: bool) -> dict[str, Any]:
    return {"shared": True} if is_shared and adapter_of(found.queue).has_tailer_names else {}


def _held(session: Session, topic: str, name: str) -> Any:  # noqa: ANN401 - a tailer of any format
    found = session.held.get(("tailer", topic, name))
    if found is None:
        raise RefusedError(f"CLOSED this connection has not opened the tailer: tailer={name}")
    return found


def _commit(found: Any, index: int) -> Outcome:  # noqa: ANN401 - a tailer of any format
    """Store a position: the messages before it are finished."""

    def answer() -> Answer:
        found.move_to_index(index)
        found.commit()
        return OK

    return Later(answer)


def _managed(found: ServedQueue, name: str, new: str | None) -> Outcome:
    journal = found.journal
    if journal is None:
        raise RefusedError(
            f"UNSUPPORTED named tailers of a {found.format} queue: only by its files"
        )

    def answer() -> Answer:
        try:
            if new is None:
                return int(journal.delete_tailer(name))
            return int(journal.rename_tailer(name, new))
        except ValueError as error:
            raise RefusedError(f"INVALID {error}") from None

    return Later(answer)
