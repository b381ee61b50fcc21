"""The work of a ``quire replicate`` process: it is a source or a sink, and may change places."""

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
from quire.replication import RefillSource, Sink, Source, Tls
from quire.replication.tls import check_allowed
from quire.vanilla import replication as vanilla

_log = logging.getLogger("quire")


def show_listening(address: Address) -> None:
    """Print where the process listens."""
    click.echo(f"listening {show_address(address)}")
    sys.stdout.flush()


class Member:
    """
    A queue in a replication.

    Args:
        path: Its directory.
        listen: The address to serve at as a source; None: it does not serve.
        to: The address of a listening sink to connect to, instead of serving; None: it serves.
        tls: The certificates.
        insecure: Whether to allow connections beyond this machine without certificates.
        name: Its name as a sink.
        acknowledge: Which messages it acknowledges as a sink.
        repair: Whether, as a sink, it puts aside messages that the source does not have.
        drop_after_s: After how long it removes disconnected sinks from the in-sync set; None:
            never.
        busy: Whether each connection has a thread that never sleeps.
        compress: Whether it compresses batches as a source.

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
        to: Address | None = None,
        drop_after_s: float | None = None,
        busy: bool = False,
        compress: bool = False,
    ) -> None:
        self._path, self._listen, self._tls, self._insecure = path, listen, tls, insecure
        self._name, self._repairs, self._to = name, repair, to
        self._drop_after_s, self._busy, self._compress = drop_after_s, busy, compress
        self._level: Literal["stored", "synced"] = acknowledge

    async def serve(self) -> None:
        """Be the source; once it has handed over, a sink of the new source."""
        async with AsyncExitStack() as stack:
            source = await self._serving(stack)
            await source.run_forever()
        await self._follow_successor(source)

    async def follow(self, origin: Address, *, listens: bool = False) -> None:
        """Be a sink, of a source that serves or connects; after a handover, the source."""
        listen = self._listen
        async with AsyncExitStack() as stack:
            serving: list[Source] = []

            async def begin(_epoch: int) -> Address:
                serving.append(await self._serving(stack))
                host, port = serving[0].address
                return host if listen is None else listen[0], port  # a certificate has the name

            shown = None if listen is None else show_address(listen)
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
                listens=listens,
                busy=self._busy,
            )
            async with keeping:
                if listens:
                    show_listening(keeping.address)
                await keeping.run_forever()
            if serving:
                await serving[0].run_forever()
        if serving:
            await self._follow_successor(serving[0])

    async def _serving(self, stack: AsyncExitStack) -> Source:
        """Return the source, which listens until the stack is closed."""
        host, port = self._to or self._listen or ("127.0.0.1", 0)
        connects, self._to = self._to is not None, None
        queue = stack.enter_context(quire.open(self._path, create=False))
        source = Source(
            queue,
            host=host,
            port=port,
            tls=self._tls,
            insecure=self._insecure,
            connects=connects,
            drop_after_s=self._drop_after_s,
            busy=self._busy,
            compress=self._compress,
        )
        await stack.enter_async_context(source)
        if not connects:
            show_listening(source.address)
        return source

    async def _follow_successor(self, source: Source) -> None:
        successor = source.successor
        if successor is None:
            return
        name, epoch, address = successor
        _log.info("handed over: name=%s epoch=%d path=%s", name, epoch, self._path)
        if address is None:
            _log.warning("the new source does not serve, so this queue stays closed: name=%s", name)
            return
        await asyncio.sleep(0)  # a signal that came meanwhile ends it here
        await self.follow(address)


class Refill:
    """
    A source that gets its messages back from a replica, from either side.

    Args:
        path: The directory of the queue on this side.
        tls: The certificates.
        insecure: Whether to do without them beyond this machine.

    """

    def __init__(self, path: Path, tls: Tls | None, *, insecure: bool) -> None:
        self._path, self._tls, self._insecure = path, tls, insecure

    async def give(self, listen: Address) -> None:
        """Have the source that connects take what the replica has."""
        host, port = listen
        giver = RefillSource(
            self._path, host=host, port=port, tls=self._tls, insecure=self._insecure
        )
        async with giver:
            show_listening(giver.address)
            name, epoch, _ = await giver.refilled()
        click.echo(f"refilled {name} epoch={epoch}")

    async def take(self, origin: Address, *, repair: bool) -> None:
        """Take what a replica has, and be a source again."""
        host, port = origin
        taker = Sink(
            self._path,
            host=host,
            port=port,
            acknowledge="synced",
            tls=self._tls,
            insecure=self._insecure,
            repair=repair,
            refills=True,
        )
        async with taker:
            await taker.run_forever()
        click.echo(f"refilled {self._path} epoch={taker.promoted_epoch}")


class VanillaMember:
    """
    A Vanilla Chronicle in a replication, which Java's protocol knows: it does not change places.

    Args:
        path: Its directory.
        insecure: Whether to go beyond this machine: the protocol has no encryption.

    """

    def __init__(self, path: Path, *, insecure: bool) -> None:
        self._path, self._insecure = path, insecure

    async def serve(self, address: Address, *, connects: bool) -> None:
        """Be the source, where sinks connect, or of a sink that listens."""
        host, port = address
        check_allowed(host, None, insecure=self._insecure)
        with quire.vanilla.open(self._path, create=False) as queue:
            async with vanilla.Source(queue, host=host, port=port, connects=connects) as source:
                if not connects:
                    show_listening(source.address)
                await source.run_forever()

    async def follow(self, address: Address, level: str | None, *, listens: bool) -> None:
        """Be a sink, of a source that serves or connects."""
        host, port = address
        check_allowed(host, None, insecure=self._insecure)
        keeping = vanilla.Sink(
            self._path,
            host=host,
            port=port,
            acknowledge=level is not None,
            synchronous=level == "synced",
            listens=listens,
        )
        async with keeping:
            if listens:
                show_listening(keeping.address)
            await keeping.run_forever()
