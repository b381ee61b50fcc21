"""Which claims of a later epoch end a source: those of its own queue, by peers that it trusts."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import pytest

import quire
from quire.errors import AppendLockedError, OldEpochError
from quire.replication import Sink, Source, promote, standing
from quire.replication.peers import is_of_same_user
from replication_reference import REFUSAL, Peer, ReferenceSink, facts, greeting, old_epoch

WAIT_S = 60.0
LATER = 7
NOBODY = 65534
Mode = Literal["none", "async"]
MODES: Final[tuple[Mode, ...]] = ("none", "async")


def identity(path: Path) -> str:
    found = standing.read(path)
    assert found is not None
    return found.identity


def claim(queue: quire.JournalQueue) -> None:
    """Have a sink claim a later epoch of a source's queue, with all that goes with it."""

    async def work() -> None:
        async with Source(queue) as source:
            peer = await ReferenceSink("later").join(source.address[1])
            await peer.send(old_epoch(identity(Path(queue.path)), LATER))
            with pytest.raises(OldEpochError) as caught:
                await asyncio.wait_for(source.run_forever(), WAIT_S)
            assert caught.value.epoch == LATER
            await peer.close()

    asyncio.run(work())


@pytest.mark.parametrize("buffer_mode", MODES)
def test_a_later_epoch_ends_a_source_for_good(buffer_mode: Mode, tmp_path: Path) -> None:
    path = tmp_path / "orders"
    with quire.open(path, buffer_mode=buffer_mode) as queue:
        claim(queue)
    with quire.open(path) as queue, pytest.raises(AppendLockedError):
        queue.appender().write_bytes(b"lost")
    assert standing.read(path) == standing.Standing(identity(path), LATER, "sink")
    assert promote(path) == LATER + 1


def claims(queue: str) -> list[bytes]:
    return [
        facts(REFUSAL, code="old-epoch", reason="no"),
        facts(REFUSAL, code="old-epoch", reason="no", epoch=LATER),
        facts(REFUSAL, code="old-epoch", reason="no", queue=queue),
        facts(REFUSAL, code="diverged", reason="no", queue=queue, epoch=LATER),
        *[old_epoch(it, LATER) for it in ("f" * 32, queue.upper() + "0", "", None, [queue])],
        *[old_epoch(queue, it) for it in (1, 0, -1, True, "7", 7.5, None, [7], 1 << 63)],
    ]


@pytest.mark.parametrize("number", range(len(claims(""))))
def test_a_claim_that_fits_no_later_source_ends_none(
    number: int, queue: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with Source(queue) as source:
            peer = await ReferenceSink("hostile").join(source.address[1])
            await peer.send(claims(identity(Path(queue.path)))[number])
            assert await peer.rest() == []
            await peer.close()
            await (await ReferenceSink("honest").join(source.address[1])).close()

    asyncio.run(work())
    queue.appender().write_bytes(b"still open")
    assert "a sink refused this source" in caplog.text


def test_a_stranger_cannot_end_a_source(queue: quire.JournalQueue) -> None:
    """Only a sink that was welcomed can have seen another epoch of this queue."""

    async def work() -> None:
        async with Source(queue) as source:
            peer = await Peer.connect(source.address[1])
            await peer.send(old_epoch(identity(Path(queue.path)), LATER))
            await peer.rest()
            await peer.close()
            await (await ReferenceSink("honest").join(source.address[1])).close()

    asyncio.run(work())
    queue.appender().write_bytes(b"still open")


@contextmanager
def another_user() -> Generator[None]:
    """Have what is opened belong to nobody."""
    if os.geteuid() != 0:
        pytest.skip("only root opens connections as another user")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux says whose connections are")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_another_users_claim_ends_no_source(
    host: str, queue: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with Source(queue, host=host) as source:
            with another_user():
                made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            made.connect(source.address)
            peer = Peer(*await asyncio.open_connection(sock=made))
            await peer.send(greeting("hostile"), old_epoch(identity(Path(queue.path)), LATER))
            await peer.rest()
            await peer.close()

    asyncio.run(work())
    queue.appender().write_bytes(b"still open")
    assert "another user's process" in caplog.text


@pytest.mark.parametrize(("host", "other"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1")])
def test_whose_a_connection_is(host: str, other: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        with socket.create_connection((other, server.getsockname()[1])):
            accepted, peer = server.accept()
            with accepted:
                assert is_of_same_user(accepted.getsockname(), peer)
                assert not is_of_same_user(accepted.getsockname(), ("10.0.0.1", peer[1]))
                assert not is_of_same_user(accepted.getsockname(), None)
        if Path("/proc/net/tcp").exists():  # what has been closed is nobody's
            assert not is_of_same_user(accepted_name := server.getsockname(), peer), accepted_name


def test_a_sink_of_an_older_epoch_follows_the_new_source(tmp_path: Path) -> None:
    """Also the old source itself, once it was fenced."""
    first, second = tmp_path / "first", tmp_path / "second"

    async def follow(path: Path, copy: Path) -> None:
        with quire.open(path) as queue:
            index = queue.appender().write_bytes(b"of " + path.name.encode())
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(index)

    asyncio.run(follow(first, second))
    assert promote(second) == 2
    with quire.open(first) as queue:

        async def fence() -> None:
            async with Source(queue) as source:
                sink = Sink(second, port=source.address[1])
                with pytest.raises(OldEpochError):
                    async with sink:
                        await sink.run_forever()
                with pytest.raises(OldEpochError):
                    await asyncio.wait_for(source.run_forever(), WAIT_S)

        asyncio.run(fence())
    asyncio.run(follow(second, first))
    found = standing.read(first)
    assert found is not None
    assert (found.epoch, found.role) == (2, "sink")
    with quire.open(first, read_only=True) as queue, queue.tailer() as tailer:
        assert list(tailer.payloads()) == [b"of first", b"of second"]
