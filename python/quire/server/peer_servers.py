"""Queues of other servers: the patterns of their names, and the servers' addresses."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from quire.errors import MovedError, OptionsError, RefusedError
from quire.recording.addresses import Address, parse_address, show_address
from quire.server.topic_names import matches

_LONGEST: Final = 1000
_PATTERN: Final = re.compile(r"[^\x00-\x20\x7f\\]+")
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")
_MAPPED: Final = "::ffff:"
"""The prefix of an IPv4 address that is written as an IPv6 address."""
_ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - found out to be ours, not listened on


class Peer(NamedTuple):
    """
    Another server, and the queues that it serves.

    Attributes:
        pattern: A pattern of the queues' names, as ``orders/*``.
        address: The address at which the server listens for clients of Redis Streams.

    """

    pattern: str
    address: Address

    @classmethod
    def of(cls, text: str) -> Peer:
        """
        Parse ``PATTERN=HOST:PORT``.

        Raises:
            OptionsError: The text has another form.

        """
        pattern, _, at = text.rpartition("=")
        form = f"expected PATTERN=HOST:PORT, as orders/*=10.0.0.2:7000, found {text!r:.200}"
        if _PATTERN.fullmatch(pattern) is None or len(pattern) > _LONGEST:
            raise OptionsError(f"invalid pattern of queues: {form}")
        if pattern.startswith("/") or pattern.endswith("/") or "//" in pattern:
            raise OptionsError(f"a pattern that no queue's name can match: {form}")
        try:
            address = parse_address(at)
        except ValueError:
            address = "", 0
        if not at.rpartition(":")[0] or not address[1] or _HOST.fullmatch(address[0]) is None:
            raise OptionsError(f"invalid address of a server: {form}")
        if address[0] in _ANYWHERE:
            raise OptionsError(f"an address that clients cannot connect to: {form}")
        return cls(pattern, address)

    @property
    def url(self) -> str:
        """The server's address, as Quire's handles take it."""
        return f"quire://{show_address(self.address)}"


class Peers:
    """
    The other servers among which queues are divided: each queue is served by one server.

    Args:
        peers: The other servers. The first pattern that matches applies.

    Raises:
        OptionsError: A pattern is given twice.

    """

    def __init__(self, peers: Iterable[Peer] = ()) -> None:
        self.all: Final = tuple(peers)
        patterns = [it.pattern for it in self.all]
        for pattern in patterns:
            if patterns.count(pattern) > 1:
                raise OptionsError(f"a pattern of queues is given twice: pattern={pattern}")

    def of(self, topic: str) -> Peer | None:
        """Return the peer that serves a queue; None: this server does."""
        return next((it for it in self.all if matches(topic, (it.pattern,))), None)

    def check(self, topic: str) -> None:
        """
        Check that this server serves a queue.

        Raises:
            MovedError: A peer serves the queue.

        """
        peer = self.of(topic)
        if peer is not None:
            error = MovedError(
                f"the queue is served elsewhere: name={topic} server={peer.url} (ask there)"
            )
            error.address = peer.url
            raise error

    def check_together(self, topics: Sequence[str]) -> None:
        """
        Check that one server serves all of these queues: a command goes to one server.

        Raises:
            RefusedError: The queues are on different servers.

        """
        owners = {it: self.of(it) for it in topics}
        if len({None if it is None else it.address for it in owners.values()}) > 1:
            shown = " ".join(
                f"{topic}={'here' if it is None else it.url}" for topic, it in owners.items()
            )
            raise RefusedError(f"CROSSSLOT the queues are on different servers: {shown:.1000}")

    def check_others(self, own: Iterable[Address]) -> None:
        """
        Check that no peer is this server; resolving names may take a while.

        Args:
            own: The addresses at which this server will listen, also as names; port 0 is ignored.

        Raises:
            OptionsError: A peer has one of this server's addresses.

        """
        listening = [(host, port) for name, port in own for host in _hosts_of((name, port))]
        for peer in self.all:
            hosts = _hosts_of(peer.address)
            if any(peer.address[1] == port and _leads_to(hosts, host) for host, port in listening):
                raise OptionsError(
                    f"a peer is this server: pattern={peer.pattern}"
                    f" address={show_address(peer.address)} (leave out what it serves itself)"
                )


def _hosts_of(address: Address) -> set[str]:
    """Return a host's IP addresses; none if its name cannot be resolved yet."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {str(it[4][0]).removeprefix(_MAPPED) for it in found}


def _leads_to(hosts: set[str], own: str) -> bool:
    """Return whether connections to a host reach an address at which this server listens."""
    if own in hosts or not hosts.isdisjoint(_ANYWHERE):
        return True
    return own in _ANYWHERE and any(map(_is_of_this_machine, hosts))


def _is_of_this_machine(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
        return True
