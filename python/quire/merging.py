"""Reading several queues in the order of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from heapq import heappop, heappush
from typing import Any, NoReturn, Protocol, TypeVar, cast

from quire._common import arguments
from quire._waiting.sleeping import AnyOf, Sleeper, pauser_at
from quire.errors import ClosedError
from quire.pausers import Pauser, pauser_of

_E_co = TypeVar("_E_co", covariant=True)


class Source(Protocol[_E_co]):
    """A tailer, of any format."""

    def read(self) -> _E_co | None:
        """Return the next message, or None when nothing is there yet."""
        ...

    def close(self) -> None:
        """Close the source."""
        ...


class Openable(Protocol[_E_co]):
    """A queue, of any format."""

    def tailer(self) -> Source[_E_co]:
        """Return a tailer at its first message."""
        ...


def merge(*_arguments: object, **_options: object) -> NoReturn:
    """Refuse an ambiguous former name."""
    raise TypeError(
        "quire.merge has two successors: quire.read_merged reads several queues at once, "
        "quire.maintenance.merge_queues writes them into one"
    )


def read_merged(
    sources: Iterable[Openable[_E_co] | Source[_E_co]],
    *,
    key: Callable[[_E_co], Any],
    follow: bool = False,
    wait_for_all: bool = False,
    pauser: Pauser | None = None,
) -> Iterator[_E_co]:
    """
    Yield the messages of several queues in the order of a key, lazily.

    Each source must itself be in that order. Messages with equal keys come in the order of the
    sources. One message of each source is held at a time; when the iterator is closed, or fails, a
    tailer is left at the message that was held.

        for excerpt in quire.read_merged([bids, asks], key=lambda it: it.unpack().unpack_long()):
            print(excerpt.data)

    Args:
        sources: Queues, which are read from their start; or tailers, each from where it is. Tailers
            stay open.
        key: What to order by, made of an excerpt.
        follow: Wait for more messages, forever, instead of ending when all sources end.
        wait_for_all: Hold a message back until every source has one, so that nothing that arrives
            later can belong before it. Without *follow* the iterator then ends at the first source
            without a message. If False, an empty source does not delay the others.
        pauser: How to wait, from :mod:`quire.pausers`.

    """
    arguments.function("a function of an excerpt")("key", key)
    arguments.flag("follow", follow)
    arguments.flag("wait_for_all", wait_for_all)
    arguments.instance(Iterable, "queues or tailers")("sources", sources)
    given = [*sources]
    for source in given:
        if not hasattr(source, "tailer") and not hasattr(source, "read"):
            raise arguments.refusal("sources", "queues or tailers", source)
    given_pauser = None if pauser is None else pauser_of(pauser)
    return _merged(given, key, given_pauser, follow=follow, all_first=wait_for_all)


def _merged(
    sources: list[Openable[_E_co] | Source[_E_co]],
    key: Callable[[_E_co], Any],
    pauser: Pauser | None,
    *,
    follow: bool,
    all_first: bool,
) -> Iterator[_E_co]:
    held: dict[int, _E_co] = {}  # what was read and not yet yielded, by the places of its sources
    with ExitStack() as opened:
        tailers = [_tailer(source, opened) for source in sources]
        own = {place for place, tailer in enumerate(tailers) if tailer is not sources[place]}
        opened.callback(_give_back, tailers, own, held)
        heads: list[tuple[Any, int]] = []
        empty = [*range(len(tailers))]
        if all(isinstance(tailer, Sleeper) for tailer in tailers):
            sleepers = AnyOf(lambda: (cast("Sleeper", tailers[place]) for place in empty))
            pauser = pauser_at(sleepers, pauser)
        else:
            pauser = pauser_of(pauser)
        while True:
            for place in empty:
                if (excerpt := tailers[place].read()) is not None:
                    held[place] = excerpt
                    heappush(heads, (key(excerpt), place))
            empty = [place for place in empty if place not in held]
            if heads and not (empty and all_first):
                pauser.reset()
                _, place = heappop(heads)
                yield held.pop(place)
                empty.append(place)
            elif follow:
                pauser.pause()
            else:
                return


def _give_back(tailers: Sequence[Any], own: set[int], held: Mapping[int, Any]) -> None:
    """Have the caller's tailers read again what was not yielded; what only reads cannot."""
    for place in held.keys() - own:
        if hasattr(tailers[place], "move_to_index"):
            with suppress(ClosedError):
                tailers[place].move_to_index(held[place].index)


def _tailer(source: Openable[_E_co] | Source[_E_co], opened: ExitStack) -> Source[_E_co]:
    if not hasattr(source, "tailer"):
        return source  # pyright: ignore[reportReturnType]
    tailer = cast("Openable[_E_co]", source).tailer()
    opened.callback(tailer.close)
    return tailer
