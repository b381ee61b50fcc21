"""The queues that the pages show, and the threads that read them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Final, TypeVar

from starlette.requests import Request

from quire.errors import QuireError, RefusedError
from quire.server.context import Context
from quire.server.served_queue import ServedQueue
from quire.server.tokens import Right
from quire.server.topic_names import topic_of
from quire.server.web.queue_listing import Listed, Listing
from quire.server.web.shown_letters import NEIGHBOURS, LetterCounts, LettersOf
from quire.server.web.visitors import Visitor, Visitors

_T = TypeVar("_T")
_THREADS: Final = 2
ON_A_PAGE: Final = 100
"""How many queues one page of the list shows."""
_TOPICS_S: Final = 5.0
_NOT_LOOKED_AT: Final = "not opened for this list, as many queues are open: see its own page"


class ShownQueues:
    """
    The queues of a server, for its pages.

    Args:
        context: What all clients of the server share.
        visitors: The visitors of its pages.

    """

    def __init__(self, context: Context, visitors: Visitors) -> None:
        self._context, self._visitors = context, visitors
        self._listing, self._letters = Listing(context.queues.errors), LetterCounts()
        self._threads = ThreadPoolExecutor(_THREADS, "quire-web")
        self._topics: tuple[float, list[str]] = (float("-inf"), [])

    def close(self) -> None:
        """End the threads once they have finished their current work."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def context(self) -> Context:
        """What all clients of the server share."""
        return self._context

    @property
    def visitors(self) -> Visitors:
        """The visitors of its pages."""
        return self._visitors

    async def in_thread(self, call: Callable[[], _T]) -> _T:
        """Run a slow call in one of a few threads, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def topics(self) -> list[str]:
        """Return the names of all queues, which may be some seconds old."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._topics[0] > _TOPICS_S:
            self._topics = now_s, await self.in_thread(self._context.queues.topics)
        return self._topics[1]

    async def listed(self, topics: Sequence[str]) -> list[Listed]:
        """Return the rows of queues in the list."""
        found = await self._opened(topics)
        with self._context.queues.using(*(it for _, it in found if not isinstance(it, str))):
            return await self.in_thread(
                lambda: [
                    Listed(topic, error=it)
                    if isinstance(it, str)
                    else self._listing.listed(topic, it.queue)
                    for topic, it in found
                ]
            )

    async def _opened(self, topics: Sequence[str]) -> list[tuple[str, ServedQueue | str]]:
        """Return the queues that exist, by name; for a queue that cannot be opened, the reason."""
        found: list[tuple[str, ServedQueue | str]] = []
        for topic in topics:
            if not self._context.queues.may_look(topic):
                found.append((topic, _NOT_LOOKED_AT))
                continue
            try:
                queue = self._context.queues.current(topic)
            except (RefusedError, OSError) as error:
                found.append((topic, self._context.queues.errors.text(error)))
                continue
            if queue is not None:
                found.append((topic, queue))
            await asyncio.sleep(0)  # other clients continue while many queues are opened
        return found

    async def letters(self, queue: ServedQueue, visitor: Visitor) -> list[LettersOf]:
        """Return the dead letters in a queue, and those of the queue in its neighbours."""
        parts = queue.topic.split("/")
        names = [it for it in await self.topics() if it != queue.topic and visitor.may("read", it)]
        names.sort(key=lambda it: (-_common(parts, it.split("/")), it))
        opened = [it for _, it in await self._opened(names[:NEIGHBOURS]) if not isinstance(it, str)]
        with self._context.queues.using(queue, *opened):
            found = await self.in_thread(lambda: self._letters.of([queue, *opened]))
        return [it for it in found if it.topic == queue.topic or it.source == queue.queue.path]

    def topic_at(self, path: str, visitor: Visitor) -> str | None:
        """Return the name of the queue at a dead letter's source path, if this server has it."""
        root = f"{self._context.queues.path}/"
        try:
            topic = topic_of(path.removeprefix(root).encode("utf-8", "replace"))
        except RefusedError:
            return None
        is_here = path.startswith(root) and visitor.may("read", topic)
        return topic if is_here else None

    def forget_topics(self) -> None:
        """List the queues again at the next request for their names."""
        self._topics = float("-inf"), []

    async def chosen(self, request: Request, visitor: Visitor) -> tuple[list[str], int, int]:
        """Return the names of the queues on a page of the list, its number, and the total."""
        wanted = request.query_params.get("name", "")[:200].lower()
        names = [
            it for it in await self.topics() if visitor.may("read", it) and wanted in it.lower()
        ]
        names.sort(key=lambda it: it.split("/"))
        given = request.query_params.get("page", "1")
        if not (given.isascii() and given.isdecimal() and len(given) < 8):  # noqa: PLR2004
            raise RefusedError(f"no such page: {given!r:.60}")
        page = max(1, int(given))
        start = (page - 1) * ON_A_PAGE
        return names[start : start + ON_A_PAGE], page, len(names)

    def queue_of(self, request: Request, visitor: Visitor, right: Right = "read") -> ServedQueue:
        """
        Return the queue that a request names.

        Raises:
            HTTPException: The visitor may not use the queue in this way.
            RefusedError: There is no such queue, or it cannot be opened.

        """
        topic = topic_of(request.path_params["topic"].encode("utf-8", "surrogateescape"))
        return self.queue_named(topic, visitor, right)

    def queue_named(self, topic: str, visitor: Visitor, right: Right) -> ServedQueue:
        """
        Return a queue by its name, which has been checked.

        Raises:
            HTTPException: The visitor may not use the queue in this way.
            RefusedError: There is no such queue, or it cannot be opened.

        """
        self._visitors.check(visitor, right, topic)
        found = self._context.queues.current(topic)
        if found is None:
            raise RefusedError(f"no such queue: name={topic}")
        return found

    async def of_queue(self, queue: ServedQueue, call: Callable[[], _T]) -> _T:
        """Run a call on a queue in a thread; if it fails, the queue may be opened again."""
        try:
            with self._context.queues.using(queue):
                return await self.in_thread(call)
        except (QuireError, OSError) as error:
            self._context.queues.check(queue, error)
            raise


def _common(parts: list[str], others: list[str]) -> int:
    """Return the number of folders that two names have in common."""
    pairs = zip(parts[:-1], others[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda it: it[0] == it[1], pairs))
