"""What a process of ``quire replicate`` does: it is a source or a sink, until it changes places."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

import click

import quire
from quire.recording.addresses import Address, show_address
from quire.replication import Sink, Source, Tls

_log = logging.getLogger("quire")


class Member:
    """
    A queue in a replication.

    Args:
        path: Its directory.
        listen: Where it serves as a source; None: it does not.
        tls: The certificates.
        insecure: Whether to do without them beyond this machine.
        name: What it is called as a sink.
        acknowledge: What it acknowledges as a sink.
        repair: Whether to put aside what the source does not have, as a sink.

    """

    def __init__(  # noqa: PLR0913 - the options of the verbs
        self,
        path: Path,
        listen: Address | None,
        tls: Tls | None,
        *,
        insecure: bool,
        name: str | None = None,
        acknowledge: Literal["stored", "synced"] = "stored",
        repair: bool = False,
    ) -> None:
        self._path, self._listen, self._tls, self._insecure = path, listen, tls, insecure
        self._name, self._repairs = name, repair
        self._level: Literal["stored", "synced"] = acknowledge

    async def serve(self) -> None:
        """Be the source; once it has handed over, a sink of the new source."""
        async with AsyncExitStack() as stack:
            source = await self._serving(stack)
            await source.run_forever()
        await self._follow_successor(source)

    async def follow(self, origin: Address) -> None:
        """Be a sink; once the source has handed over to it, the source."""
        async with AsyncExitStack() as stack:
            serving: list[Source] = []

            async def begin(_epoch: int) -> Address:
                serving.append(await self._serving(stack))
                return serving[0].address

            shown = None if self._listen is None else show_address(self._listen)
            keeping = Sink(
                self._path,
                host=origin[0],
                port=origin[1],
                name=self._name,
                acknowledge=self._level,
                tls=self._tls,
                insecure=self._insecure,
                repair=self._repairs,
                address=shown,
                on_promoted=None if shown is None else begin,
            )
            async with keeping:
                await keeping.run_forever()
            if serving:
                await serving[0].run_forever()
        if serving:
            await self._follow_successor(serving[0])

    async def _serving(self, stack: AsyncExitStack) -> Source:
        """Return the source, which listens until the stack is closed."""
        host, port = self._listen or ("127.0.0.1", 0)
        queue = stack.enter_context(quire.open(self._path, create=False))
        source = Source(queue, host=host, port=port, tls=self._tls, insecure=self._insecure)
        await stack.enter_async_context(source)
        click.echo(f"listening {show_address(source.address)}")
        sys.stdout.flush()
        return source

    async def _follow_successor(self, source: Source) -> None:
        successor = source.successor
        if successor is None:
            return
        name, epoch, address = successor
        _log.info("handed over: name=%s epoch=%d path=%s", name, epoch, self._path)
        if address is None:
            _log.warning(
                "the new source does not serve, and this queue stays closed: name=%s", name
            )
            return
        await asyncio.sleep(0)  # a signal that came meanwhile ends it here
        await self.follow(address)
