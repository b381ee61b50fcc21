"""The table of commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from quire.errors import RefusedError
from quire.server.answers import Simple

if TYPE_CHECKING:
    from quire.server.answers import Answer
    from quire.server.client_session import Handler


class Command(NamedTuple):
    """
    A command.

    Attributes:
        name: Its name, in capitals.
        call: Carries it out.
        arity: How many arguments it has with its name; the least, negative, if there may be more.
        keys: The places of the first and last name of a queue, and their distance.
        flags: What clients may know of it.
        is_open: Whether a client without a token may give it.
        summary: What it does.

    """

    name: str
    call: Handler
    arity: int
    keys: tuple[int, int, int]
    flags: tuple[str, ...]
    is_open: bool
    summary: str

    def described(self) -> Answer:
        """Return its description for ``COMMAND``."""
        flags: list[Answer] = [Simple(it) for it in self.flags]
        empty: list[list[Answer]] = [[], [], [], []]
        return [self.name.lower().encode(), self.arity, flags, *self.keys, *empty]

    def check_count(self, request: Sequence[bytes]) -> None:
        """
        Check how many arguments a request for the command has.

        Raises:
            RefusedError: The request has too many arguments, or too few.

        """
        count = len(request)
        if count != self.arity if self.arity >= 0 else count < -self.arity:
            raise RefusedError(f"wrong number of arguments for '{self.name.lower()}' command")

    def keys_of(self, request: Sequence[bytes]) -> list[bytes]:
        """Return the names of queues in a request for the command."""
        if "movablekeys" in self.flags:  # after STREAMS, with as many ids
            start = 4 if self.name == "XREADGROUP" else 1  # a consumer may have that name
            words = [b"", *(it.upper() for it in request[start:])]
            if b"STREAMS" not in words:
                return []
            after = request[start + words.index(b"STREAMS") :]
            return [*after[: len(after) // 2]]
        first, last, step = self.keys
        end = last + 1 if last >= 0 else len(request) + last + 1
        return [*request[first:end:step]] if first else []


_NUMBER: Final = re.compile(rb"-?\d{1,19}")
_PART: Final = 256
_T = TypeVar("_T")
COMMANDS: Final[dict[bytes, Command]] = {}


def command(
    name: str,
    arity: int,
    *flags: str,
    keys: tuple[int, int, int] = (0, 0, 0),
    is_open: bool = False,
) -> Callable[[Handler], Handler]:
    """Add a function to the table; the first line of its docstring is its summary."""

    def added(call: Handler) -> Handler:
        summary = (call.__doc__ or "").partition("\n")[0]
        COMMANDS[name.encode()] = Command(name, call, arity, keys, flags, is_open, summary)
        return call

    return added


def whole(text: bytes, what: str = "value", least: int = 0) -> int:
    """
    Return the number of an argument.

    Raises:
        RefusedError: The argument is not a whole number, or is too low.

    """
    number = int(text) if _NUMBER.fullmatch(text) else least - 1
    if number < least or number > 2**63 - 1:
        raise RefusedError(f"{what} is not an integer or out of range")
    return number


def batched(found: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yield the items in batches, between which other clients are served."""
    for start in range(0, len(found), _PART):
        yield found[start : start + _PART]


class Arguments:
    """
    The arguments of a command, taken one by one.

    Args:
        request: The command's name and its arguments.
        start: The place of the first to take.

    """

    def __init__(self, request: Sequence[bytes], start: int = 1) -> None:
        self._request, self._at = request, start

    def __bool__(self) -> bool:
        """Return whether there are more."""
        return self._at < len(self._request)

    def word(self) -> bytes:
        """Return the next one in capitals, without taking it; empty at the end."""
        return self._request[self._at].upper() if self else b""

    def takes(self, word: str) -> bool:
        """Take the next one if it is this word."""
        at, request = self._at, self._request  # asked several times by each command
        if at >= len(request) or request[at].upper() != word.encode():
            return False
        self._at = at + 1
        return True

    def next(self) -> bytes:
        """
        Take the next one.

        Raises:
            RefusedError: No argument is left.

        """
        if not self:
            raise RefusedError("syntax error")
        self._at += 1
        return self._request[self._at - 1]

    def whole(self, what: str = "value", least: int = 0) -> int:
        """Take the next one as a number."""
        return whole(self.next(), what, least)

    @property
    def left(self) -> int:
        """How many are left."""
        return len(self._request) - self._at

    def rest(self) -> list[bytes]:
        """Take all that are left."""
        found: list[Any] = [*self._request[self._at :]]
        self._at = len(self._request)
        return found

    def end(self) -> None:
        """
        Check that there are no more.

        Raises:
            RefusedError: An argument is left.

        """
        if self:
            raise RefusedError("syntax error")
