"""Connections that a thread of its own drives: `--busy`."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quire
import replication_reference as reference
from authority import Authority
from cli_runs import Cli, started
from parameters import some
from ports import free_port
from quire.errors import OptionsError, ReplicationError
from quire.replication import Sink, Source, promote
from replicas import last_index, wait_until
from replication_reference import ReferenceSink

WAIT_S = 60.0


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return list(tailer.payloads())


@contextmanager
def following(orders: Path, copy: Path, *, connects: bool) -> Generator[None]:
    """Replicate by two busy processes, of which either connects."""
    port = free_port()
    there = f"127.0.0.1:{port}"
    source = ("replicate", "source", orders, "--busy", "--to" if connects else "--listen", there)
    sink = ("replicate", "sink", copy, "--busy", "--accept" if connects else "--from", there)
    with started(*source) as first, started(*sink, "--name", "b") as second:
        wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
        yield
        for process in (first, second):
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=WAIT_S)
            assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()


@pytest.mark.check
@pytest.mark.parametrize("connects", [False, True], ids=["listens", "connects"])
def test_busy_processes_replicate_until_a_signal(
    connects: bool,  # noqa: FBT001
    orders: Path,
    tmp_path: Path,
) -> None:
    copy = tmp_path / "copy"
    with (
        following(orders, copy, connects=connects),
        quire.open(orders, timeout_s=WAIT_S) as queue,
        queue.appender() as appender,
    ):
        wait_until(lambda: [it.in_sync for it in queue.replicas] == [True], limit_s=WAIT_S)
        with appender.in_flight(64) as flight:
            sent = [flight.write_bytes(b"%d" % number) for number in range(5000)]
        assert sent[-1].result() == queue.last_index
        # More than a socket holds, which the source sends before it ends.
        appender.write_many([b"%06d" % number * 1000 for number in range(5000)])
    wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
    assert payloads(copy) == payloads(orders)


@pytest.mark.parametrize("level", some(["stored", "synced"], keep=[1]))
def test_a_handover_between_busy_threads_is_exact(level: str, orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders) as queue, queue.group("billing").consumer() as consumer:
            async with Source(queue, busy=True) as source:
                sink = Sink(copy, port=source.address[1], name="b", acknowledge=level, busy=True)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
                async with sink:
                    await asyncio.wait_for(source.acknowledged(queue.last_index or 0), WAIT_S)
                    message = consumer.read()
                    assert message is not None
                    assert message.ack()
                    assert (await source.hand_over("b")).epoch == 2
                    await asyncio.wait_for(sink.run_forever(), WAIT_S)
                await asyncio.wait_for(source.run_forever(), WAIT_S)

    asyncio.run(work())
    with quire.open(copy) as queue, queue.group("billing").consumer() as consumer:
        second = consumer.read()
        assert second is not None
        assert (second.data, second.redelivered) == (b"two", False)


def test_a_promotion_ends_a_busy_sink(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue, busy=True) as source:
                sink = Sink(copy, port=source.address[1], busy=True)
                with pytest.raises(ReplicationError, match="promoted"):  # noqa: PT012
                    async with sink:
                        await sink.stored(queue.last_index or 0)
                        assert await asyncio.to_thread(promote, copy, timeout_s=WAIT_S) == 2
                        await sink.run_forever()

    asyncio.run(work())
    with quire.open(copy) as queue:
        queue.appender().write_bytes(b"of the new source")


def test_a_sink_that_breaks_the_protocol_hurts_nobody(
    orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        with quire.open(orders) as queue:
            async with (
                Source(queue, busy=True) as source,
                Sink(tmp_path / "copy", port=source.address[1], busy=True) as sink,
            ):
                peer = await ReferenceSink("hostile").join(source.address[1])
                await peer.send(reference.start(None))
                await peer.expect(reference.BATCH)
                await peer.send(reference.start(None))
                (refusal,) = await peer.expect(reference.REFUSAL)
                await peer.close()
                index = queue.appender().write_bytes(b"three")
                await asyncio.wait_for(sink.stored(index), WAIT_S)
                assert refusal["code"] == "protocol"

    with caplog.at_level(logging.WARNING, "quire"):
        asyncio.run(work())
    assert [it.getMessage().partition(":")[0] for it in caplog.records] == ["disconnected a sink"]


def test_what_a_slow_sink_does_not_take_waits(orders: Path, tmp_path: Path) -> None:
    """Much more than sockets hold, while the sink is read from, too."""

    async def work() -> None:
        with quire.open(orders) as queue:
            queue.appender().write_many([b"x" * 60_000] * 200)
            async with Source(queue, busy=True) as source:
                slow = await ReferenceSink("slow").join(source.address[1])
                await slow.send(reference.start(None))
                async with Sink(tmp_path / "copy", port=source.address[1], busy=True) as sink:
                    await asyncio.wait_for(sink.stored(queue.last_index or 0), WAIT_S)
                found = 0
                while found < queue.entry_count:
                    _, content = await slow.expect(reference.BATCH)
                    found += sum(not it.is_metadata for it in content.documents)
                await slow.close()

    asyncio.run(work())


def test_busy_threads_do_not_encrypt(orders: Path, tmp_path: Path, cli: Cli) -> None:
    tls = Authority.make(tmp_path, "ours").signed("a")
    with (
        quire.open(orders) as queue,
        pytest.raises(OptionsError, match="cannot use TLS"),
    ):
        Source(queue, tls=tls, busy=True)
    with pytest.raises(OptionsError, match="cannot use TLS"):
        Sink(tmp_path / "copy", port=1, tls=tls, busy=True)
    files = {"--certificate": tls.certificate, "--key": tls.key, "--authority": tls.authority}
    given = [str(it) for pair in files.items() for it in pair]
    for verb in (("source", orders), ("sink", tmp_path / "copy", "--from", "127.0.0.1:1")):
        ran = cli("replicate", *verb, "--busy", *given)
        assert (ran.code, "cannot use TLS" in ran.err) == (2, True)
    assert not (tmp_path / "copy").exists()


def test_vanilla_chronicles_have_no_busy_threads(tmp_path: Path, cli: Cli) -> None:
    with quire.open(tmp_path / "old", format="vanilla") as queue:
        queue.appender().write_bytes(b"one")
    ran = cli("replicate", "source", tmp_path / "old", "--busy")
    assert (ran.code, "not supported by the protocol of Vanilla Chronicles: busy" in ran.err) == (
        2,
        True,
    )
