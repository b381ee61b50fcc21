"""Limits of one client's share of the server: its connections, pages, streams and names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from quire.errors import RefusedError
from quire.server.audit import Client


def name_of(client: Client) -> str:
    """Return the name under which a client counts: its token's, or its machine's."""
    return client.peer.rpartition(":")[0] if client.token is None else f"token {client.token.name}"


def check_length(what: str, text: bytes, limit: int) -> None:
    """
    Check that a text chosen by clients, such as a name that outlives them, is not too long.

    Raises:
        RefusedError: The text is too long.

    """
    if len(text) > limit:
        raise RefusedError(f"{what} is too long: length={len(text)} limit={limit} bytes")


def check_room(what: str, name: str, names: Collection[str], limit: int) -> None:
    """
    Check that a queue may get a name that is chosen by clients and outlives them.

    Raises:
        RefusedError: The name is new, and the queue has too many of its kind.

    """
    if name not in names and len(names) >= limit:
        raise RefusedError(f"the queue has too many {what}: limit={limit} (delete unused ones)")


class ClientBytes:
    """
    Counts the bytes that the server holds for clients.

    Args:
        refusal: The error text for a client that takes too many.
        most_of_one: How many one client may take.

    """

    def __init__(self, refusal: str, most_of_one: int) -> None:
        self._refusal = f"{refusal}: limit_of_a_client={most_of_one} bytes"
        self._most_of_one: Final = most_of_one
        self._counts: Counter[str] = Counter()

    def add(self, name: str, count: int) -> None:
        """
        Count bytes of a client.

        Raises:
            RefusedError: The client would have too many; these are not counted.

        """
        if self._counts[name] + count > self._most_of_one:
            raise RefusedError(self._refusal)
        self._counts[name] += count

    def remove(self, name: str, count: int) -> None:
        """Stop counting bytes of a client."""
        self._counts[name] -= count
        if not self._counts[name]:
            del self._counts[name]


class ClientShares:
    """
    Counts how many of one thing clients have.

    Args:
        refusal: The error text for a client that cannot have one more.
        most: How many there may be at once.
        most_of_one: How many of them one client may have.

    """

    def __init__(self, refusal: str, most: int, most_of_one: int) -> None:
        self._refusal = f"{refusal}: limit={most} limit_of_a_client={most_of_one}"
        self._most: Final = most
        self._most_of_one: Final = most_of_one
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    def check(self, name: str) -> None:
        """
        Check that a client may have one more.

        Raises:
            RefusedError: The client, or all clients together, hold too many.

        """
        if self._counts.total() >= self._most or self._counts[name] >= self._most_of_one:
            raise RefusedError(self._refusal)

    def take(self, name: str) -> None:
        """
        Count one more of a client.

        Raises:
            RefusedError: The client, or all clients together, hold too many.

        """
        with self._lock:
            self.check(name)
            self._counts[name] += 1

    def give_back(self, name: str) -> None:
        """Count one less of a client."""
        with self._lock:
            self._counts[name] -= 1
            self._counts += Counter()  # forgets those that are zero

    def move(self, name: str, new: str) -> None:
        """
        Count one as that of another client.

        Raises:
            RefusedError: The other client holds too many.

        """
        if name == new:
            return
        with self._lock:
            if self._counts[new] >= self._most_of_one:
                raise RefusedError(self._refusal)
            self._counts[new] += 1
        self.give_back(name)

    @contextmanager
    def holding(self, name: str) -> Generator[None]:
        """
        Count one more of a client, for a while.

        Raises:
            RefusedError: The client, or all clients together, hold too many.

        """
        self.take(name)
        try:
            yield
        finally:
            self.give_back(name)
