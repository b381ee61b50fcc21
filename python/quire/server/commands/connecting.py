"""Commands of a connection: HELLO, AUTH, CLIENT, COMMAND, INFO and the like."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Final

from quire._native import VERSION
from quire.errors import RefusedError
from quire.recording.addresses import show_address
from quire.server.answers import OK, Answer, Simple
from quire.server.client_session import Later, Steps
from quire.server.client_shares import check_length
from quire.server.commands.command_table import COMMANDS, Arguments, command, whole
from quire.server.glob_patterns import matcher
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire.server.client_session import Outcome, Session
    from quire.server.tokens import Token

_LIKE: Final = "7.0.0"
"""The version of Redis whose answers these resemble."""
_NAME: Final = re.compile(rb"[!-~]*")
_TEXT: Final = {2, 3}
_LONGEST_PATTERN: Final = 1000
_LOOKED_FOR: Final = 32
"""How many queues are looked for before other clients are served."""


@command("HELLO", -1, "fast", "noscript", is_open=True)
def hello(session: Session, request: Sequence[bytes]) -> Outcome:
    """Choose the protocol, authenticate and name the connection."""
    given = Arguments(request)
    protocol = session.protocol
    if given:
        try:
            protocol = int(given.next())
        except ValueError:
            raise RefusedError("Protocol version is not an integer or out of range") from None
        if protocol not in _TEXT:
            raise RefusedError("NOPROTO unsupported protocol version")
    name: bytes | None = None
    while given:
        if given.takes("AUTH"):
            given.next()
            _authenticate(session, given.next())
        elif given.takes("SETNAME"):
            name = given.next()
        else:
            raise RefusedError(
                f"Syntax error in HELLO option '{given.next().decode('utf-8', 'replace')}'"
            )
    if not session.is_admitted:
        raise RefusedError("NOAUTH HELLO must be called with the client already authenticated")
    if name is not None:
        _set_name(session, name)
    session.protocol = protocol
    greeting: dict[str, Answer] = {
        "server": b"quire",
        "version": _LIKE.encode(),
        "proto": protocol,
        "id": session.number,
        "mode": b"standalone",
        "role": b"master",
        "modules": [],
        "quire": VERSION.encode(),
        "run": session.context.run_id.encode(),
    }
    return greeting | {key: at.encode() for key, at in session.context.addresses.items()}


@command("AUTH", -2, "fast", "noscript", is_open=True)
def auth(session: Session, request: Sequence[bytes]) -> Outcome:
    """Authenticate with a token, as the password of any user."""
    if len(request) > 3:  # noqa: PLR2004 - a user and a password
        raise RefusedError("syntax error")
    _authenticate(session, request[-1])
    return OK


def _authenticate(session: Session, token: bytes) -> None:
    context = session.context
    if not context.needs_token():
        raise RefusedError(
            "AUTH <password> called without any password configured for the default user."
            " Are you sure your configuration is correct?"
        )
    found = context.find(token)
    if found is None:
        context.note("wrong token", session, "")
        raise RefusedError("WRONGPASS invalid username-password pair or user is disabled.")
    session.identify(found)
    context.note("authenticated", session, "")


@command("PING", -1, "fast")
def ping(session: Session, request: Sequence[bytes]) -> Outcome:
    """Answer PONG, or the argument."""
    del session
    if len(request) > 2:  # noqa: PLR2004 - one text
        raise RefusedError("wrong number of arguments for 'ping' command")
    return request[1] if len(request) > 1 else Simple("PONG")


@command("ECHO", 2, "fast")
def echo(session: Session, request: Sequence[bytes]) -> Outcome:
    """Answer the argument."""
    del session
    return request[1]


@command("QUIT", -1, "fast", is_open=True)
def leave(session: Session, request: Sequence[bytes]) -> Outcome:
    """Close the connection."""
    del request
    session.close()
    return OK


@command("RESET", 1, "fast", is_open=True)
def reset(session: Session, request: Sequence[bytes]) -> Outcome:
    """Reset the connection's settings."""
    del request
    session.identify(None)
    session.protocol, session.name = 2, ""
    return Simple("RESET")


@command("SELECT", 2, "fast")
def select(session: Session, request: Sequence[bytes]) -> Outcome:
    """Accept database 0, the only one."""
    del session
    if whole(request[1]) != 0:
        raise RefusedError("DB index is out of range: a server has one directory of queues")
    return OK


@command("CLIENT", -2)
def client(session: Session, request: Sequence[bytes]) -> Outcome:  # noqa: PLR0911 - its words
    """Name the connection, or describe it."""
    given = Arguments(request, 2)
    match request[1].upper():
        case b"ID":
            return session.number
        case b"GETNAME":
            return session.name.encode() or None
        case b"SETNAME":
            _set_name(session, given.next())
            return OK
        case b"SETINFO":
            key, value = given.next().decode("utf-8", "replace").lower(), given.next()
            if key not in session.library:
                raise RefusedError(f"Unrecognized option '{key}'")
            if _NAME.fullmatch(value) is None:
                raise RefusedError(f"{key} cannot contain spaces, newlines or special characters.")
            session.library[key] = value[:100].decode()
            return OK
        case b"INFO":
            return _listed(session).encode()
        case b"LIST":
            known = session.context.sessions if session.token is None else {session}
            return "".join(f"{_listed(it)}\n" for it in sorted(known, key=_number)).encode()
        case b"NO-EVICT" | b"NO-TOUCH":
            return OK
        case _:
            raise RefusedError(f"unknown subcommand '{request[1].decode('utf-8', 'replace')}'")


def _number(session: Session) -> int:
    return session.number


def _set_name(session: Session, name: bytes) -> None:
    if _NAME.fullmatch(name) is None or len(name) > 100:  # noqa: PLR2004 - said in the text
        raise RefusedError("Client names cannot contain spaces, newlines or special characters.")
    session.name = name.decode()


def _listed(session: Session) -> str:
    now = time.monotonic()
    user = "default" if session.token is None else session.token.name.replace(" ", "_")
    library = " ".join(f"{key}={value}" for key, value in session.library.items())
    return (
        f"id={session.number} addr={session.peer} name={session.name}"
        f" age={int(now - session.began_s)} idle={int(now - session.heard_s)}"
        f" db=0 qbuf={session.pending_bytes} user={user} resp={session.protocol} {library}"
    )


@command("COMMAND", -1)
def describe(session: Session, request: Sequence[bytes]) -> Outcome:
    """List the commands."""
    if len(request) > (most := session.context.limits.names):
        raise RefusedError(f"too many arguments: limit={most}")
    known = [COMMANDS[name] for name in sorted(COMMANDS)]
    match request[1].upper() if len(request) > 1 else b"":
        case b"":
            return [it.described() for it in known]
        case b"COUNT":
            return len(known)
        case b"LIST":
            return [it.name.lower().encode() for it in known]
        case b"INFO":
            asked = [COMMANDS.get(it.upper()) for it in request[2:]] or known
            return [None if it is None else it.described() for it in asked]
        case b"GETKEYS":
            return [*_keys_of(request[2:])]
        case b"DOCS":
            wanted = {it.upper() for it in request[2:]} or set(COMMANDS)
            return {
                it.name.lower(): {"summary": it.summary.encode()}
                for it in known
                if it.name.encode() in wanted
            }
        case _:
            raise RefusedError(f"unknown subcommand '{request[1].decode('utf-8', 'replace')}'")


def _keys_of(request: Sequence[bytes]) -> list[bytes]:
    """Return the names of queues in a request, without executing it."""
    if len(request) < 2:  # noqa: PLR2004 - a command and its key
        raise RefusedError("wrong number of arguments for 'command|getkeys' command")
    known = COMMANDS.get(request[0].upper())
    if known is None:
        raise RefusedError("Invalid command specified")
    if known.keys == (0, 0, 0) and "movablekeys" not in known.flags:
        raise RefusedError("The command has no key arguments")
    try:
        known.check_count(request)
    except RefusedError:
        raise RefusedError("Invalid number of arguments specified for command") from None
    found = known.keys_of(request)
    if not found:
        raise RefusedError("Invalid arguments specified for command")
    return found


@command("INFO", -1)
def info(session: Session, request: Sequence[bytes]) -> Outcome:
    """Describe the server and its state."""
    context = session.context
    sections: dict[str, dict[str, object]] = {
        "server": {
            "redis_version": _LIKE,
            "quire_version": VERSION,
            "redis_mode": "standalone",
            "process_id": os.getpid(),
            "run_id": context.run_id,
            "uptime_in_seconds": int(time.time() - context.started_s),
        },
        "clients": {
            "connected_clients": len(context.sessions),
            "blocked_clients": sum(it.waiting is not None for it in context.sessions),
            "maxclients": context.limits.connections,
        },
        "memory": {"used_memory_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024},
        "stats": {"total_commands_processed": context.commands},
        "replication": {"role": "master", "connected_slaves": 0},
        "queues": {"open_queues": len(context.queues.opened)},
        "peers": {
            f"peer{number}": f"pattern={it.pattern},address={show_address(it.address)}"
            for number, it in enumerate(context.queues.peers.all)
        },
    }
    asked = {it.decode("utf-8", "replace").lower() for it in request[1:]}
    is_all = not asked or bool(asked & {"all", "default", "everything"})
    shown = {name: it for name, it in sections.items() if is_all or name in asked}
    return "\r\n".join(
        f"# {name.capitalize()}\r\n" + "".join(f"{key}:{value}\r\n" for key, value in it.items())
        for name, it in shown.items()
    ).encode()


@command("TYPE", 2, "readonly", keys=(1, 1, 1))
def kind(session: Session, request: Sequence[bytes]) -> Outcome:
    """Answer that a queue is a stream."""
    found = session.queue("read", topic_of(request[1]))
    return Simple("none" if found is None else "stream")


@command("EXISTS", -2, "readonly", keys=(1, -1, 1))
def exists(session: Session, request: Sequence[bytes]) -> Outcome:
    """Count the existing queues among these names."""
    topics = [topic_of(it) for it in request[1:]]
    session.context.queues.peers.check_together(topics)

    def counted() -> Generator[None, None, Answer]:
        found = 0
        for number, topic in enumerate(topics, 1):
            found += session.queue("read", topic) is not None
            if not number % _LOOKED_FOR:
                yield
        return found

    return Steps(counted())


@command("DBSIZE", 1, "readonly")
def size(session: Session, request: Sequence[bytes]) -> Outcome:
    """Count the queues that the client may read."""
    del request
    token, names = session.token, session.context.names
    return Later(lambda: names.ask(lambda found: len(_readable(found, token))))


@command("SCAN", -2, "readonly")
def scan(session: Session, request: Sequence[bytes]) -> Outcome:
    """List the queues that the client may read."""
    given = Arguments(request)
    cursor, pattern, count, is_stream = given.whole("invalid cursor: it"), b"*", 10, True
    while given:
        if given.takes("MATCH"):
            check_length("the pattern", pattern := given.next(), _LONGEST_PATTERN)
        elif given.takes("COUNT"):
            count = given.whole(least=1)
        elif given.takes("TYPE"):
            is_stream = given.next().lower() == b"stream"
        else:
            raise RefusedError("syntax error")
    fits, token, names = matcher(pattern), session.token, session.context.names

    def listed(found: list[str]) -> Answer:
        topics = _readable(found, token)
        part = map(str.encode, topics[cursor : cursor + count])
        following = cursor + count if cursor + count < len(topics) else 0
        return [b"%d" % following, [it for it in part if is_stream and fits(it)]]

    kept = names.kept() if cursor else None
    return Later(lambda: names.ask(listed) if kept is None else listed(kept))


@command("QUIRE.PEERS", 1, "readonly", "fast")
def peers(session: Session, request: Sequence[bytes]) -> Outcome:
    """List the patterns of queues on other servers, each with that server's address."""
    del request
    return [[it.pattern.encode(), it.url.encode()] for it in session.context.queues.peers.all]


def _readable(topics: list[str], token: Token | None) -> list[str]:
    return [it for it in topics if token is None or token.may("read", it)]


@command("CONFIG", -2, "admin")
def config(session: Session, request: Sequence[bytes]) -> Outcome:
    """Answer that there is no such setting: settings are options of the server's command."""
    del session
    if request[1].upper() == b"GET":
        return {}
    raise RefusedError("clients cannot change settings: they are options of quire serve")
