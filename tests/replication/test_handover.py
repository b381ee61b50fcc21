"""A sink takes the place of its source: nothing is lost, and never are two of them open."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run, started
from event_loops import until
from java_peer import JavaProcess
from paths import SUPPORT
from ports import free_port
from quire._common.durable import SafeFolder
from quire._native import ReplicaStates, boot_id, boot_time_ns
from quire.errors import AppendLockedError, HandoverError, PeerSilentError, ReplicationError
from quire.replication import Sink, Source, handover, promote, standing
from quire_peer import start
from replicas import last_index, wait_until
from replication_reference import (
    BATCH,
    COMPRESSED_BATCH,
    HANDOVER,
    HEARTBEAT,
    Peer,
    Place,
    ReferenceSink,
    acknowledgement,
    greeting,
    heartbeat,
    taken_over,
)
from replication_reference import start as start_frame

WAIT_S = 60.0


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return list(tailer.payloads())


def is_open(path: Path) -> bool:
    """Whether anybody may append to a queue."""
    try:
        with quire.open(path, create=False) as queue:
            queue.appender().write_bytes(b"probe")
    except AppendLockedError:
        return False
    return True


def part(path: Path) -> tuple[int, str]:
    found = standing.read(path)
    assert found is not None
    return found.epoch, found.role


@pytest.mark.parametrize("level", ["stored", "synced"])
def test_a_sink_takes_over(level: str, orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                sink = Sink(copy, port=source.address[1], name="b", acknowledge=level)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
                async with sink:
                    await sink.stored(queue.last_index or 0)
                    queue.appender().write_bytes(b"three")
                    found = await source.hand_over("b")
                    assert (found.name, found.epoch, found.address) == ("b", 2, None)
                    await asyncio.wait_for(sink.run_forever(), WAIT_S)
                    assert sink.promoted_epoch == 2
                await asyncio.wait_for(source.run_forever(), WAIT_S)
                assert source.successor == found

    asyncio.run(work())
    assert payloads(copy) == [b"one", b"two", b"three"]
    assert (part(orders), part(copy)) == ((2, "sink"), (2, "source"))
    assert (is_open(orders), is_open(copy)) == (False, True)


def test_a_queue_without_messages(tmp_path: Path) -> None:
    path, copy = tmp_path / "orders", tmp_path / "copy"

    async def work() -> None:
        with quire.open(path) as queue:
            async with Source(queue) as source, Sink(copy, port=source.address[1], name="b"):
                await until(lambda: bool(source.sinks))
                await source.hand_over("b")

    asyncio.run(work())
    assert (is_open(path), is_open(copy)) == (False, True)


def test_a_sink_that_does_not_answer_changes_nothing(orders: Path) -> None:
    """It acknowledges what it had, and says nothing more."""

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                peer = await Peer.connect(source.address[1])
                await peer.send(greeting("b", features=["handover"]), start_frame(None))
                await until(lambda: bool(source.sinks))
                with pytest.raises(PeerSilentError, match="appends continue"):
                    await source.hand_over("b", timeout_s=0.3)
                await peer.close()
            assert source.successor is None

    asyncio.run(work())
    assert part(orders) == (1, "source")
    assert is_open(orders)


def test_an_append_that_does_not_end_in_time_changes_nothing(orders: Path, tmp_path: Path) -> None:
    async def work() -> None:
        with quire.open(orders) as queue:
            async with (
                Source(queue) as source,
                Sink(tmp_path / "copy", port=source.address[1], name="b"),
            ):
                await until(lambda: bool(source.sinks))
                with queue.appender().writing_document() as document:
                    document.write_bytes(b"slow")
                    with pytest.raises(ReplicationError, match=r"appends continue.*holder_pid="):
                        await source.hand_over("b", timeout_s=0.1)
                queue.appender().write_bytes(b"after it")
                await source.hand_over("b")

    asyncio.run(work())
    assert payloads(tmp_path / "copy") == payloads(orders)
    assert payloads(orders)[-2:] == [b"slow", b"after it"]


def test_a_sink_that_is_not_there_or_too_old(orders: Path) -> None:
    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                with pytest.raises(ReplicationError, match="connected=none"):
                    await source.hand_over("b")
                first = await ReferenceSink("b").join(source.address[1])
                with pytest.raises(ReplicationError, match="cannot take over"):
                    await source.hand_over("b")
                second = await ReferenceSink("b").join(source.address[1])
                with pytest.raises(ReplicationError, match="more than one"):
                    await source.hand_over("b")
                await first.close()
                await second.close()

    asyncio.run(work())
    assert is_open(orders)


async def handed_over(source: Source, queue: quire.JournalQueue) -> tuple[Peer, int, Place]:
    """Take part as another implementation until HANDOVER has come."""
    sink = ReferenceSink("b")
    peer = await Peer.connect(source.address[1])
    await peer.send(greeting("b", features=["handover", "strange"], address="h:1"))
    (sink.welcome,) = await peer.expect(2)
    assert "handover" in sink.welcome["features"]
    await peer.send(start_frame(None))
    while sink.end is None or sink.end.next <= (queue.last_index or 0):
        time_ns, content = await peer.expect(7)
        sink.take(content)
        await peer.send(acknowledgement(time_ns, content.end))
    kind, body = HEARTBEAT, b""
    while kind != HANDOVER:
        await peer.send(heartbeat())
        kind, body = await peer.receive_raw()
    epoch = int.from_bytes(body[:8], "little")
    assert body[8] == 1
    following = int.from_bytes(body[9:17], "little")
    assert following == sink.end.next
    return peer, epoch, sink.end


@pytest.mark.parametrize("answers", [True, False])
def test_another_implementation_takes_over(answers: bool, orders: Path) -> None:  # noqa: FBT001
    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                taking = asyncio.ensure_future(handed_over(source, queue))
                await until(lambda: bool(source.sinks))
                handing = asyncio.ensure_future(source.hand_over("h:1"))
                peer, epoch, _ = await taking
                assert epoch == 2
                if answers:
                    await peer.send(taken_over(2, "127.0.0.1", 1))
                    assert (await handing).address == ("127.0.0.1", 1)
                    await source.run_forever()
                await peer.close()
                if not answers:
                    with pytest.raises(HandoverError, match="stays closed"):
                        await handing
                    with pytest.raises(HandoverError):
                        await source.run_forever()

    asyncio.run(work())
    assert not is_open(orders)
    assert part(orders) == (2, "sink")
    assert promote(orders) == 3  # later than what the other may have begun
    assert is_open(orders)


@pytest.mark.check
def test_an_answer_that_cannot_be_written(
    orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the source looks for the next request."""
    answer = orders / "handover-answer.json"

    async def work(queue: quire.JournalQueue) -> None:
        async with Source(queue) as source:
            sink = Sink(tmp_path / "copy", port=source.address[1], name="b", takes_over=False)
            async with sink:
                await source.acknowledged(queue.last_index or 0)
                answer.mkdir()
                with pytest.raises(PeerSilentError, match="did not answer"):
                    await asyncio.to_thread(handover, orders, "b", timeout_s=0.1)
                answer.rmdir()
                with pytest.raises(ReplicationError, match="did not hand over"):
                    await asyncio.to_thread(handover, orders, "b")

    with quire.open(orders) as queue:
        asyncio.run(work(queue))
    text = "a request to hand over cannot be answered"
    assert [text in it.getMessage() for it in caplog.records].count(True) == 1


def test_requests_that_nobody_takes(cli: Cli, orders: Path, copy_of_nothing: Path) -> None:
    ran = cli("handover", orders, "--to", "b")
    assert ran.code == 1
    assert "no source of this queue took the request" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not list(orders.glob("*handover*"))
    assert cli("handover", copy_of_nothing, "--to", "b").code == 1
    ReplicaStates.open_or_create(orders).slot_of("host:b", "10.0.0.2:7001")
    assert (
        "(no source runs here, or it has no such sink: it has had 'host:b')"
        in cli("handover", orders, "--to", "b").err
    )
    assert not copy_of_nothing.exists()


@pytest.fixture
def copy_of_nothing(tmp_path: Path) -> Path:
    return tmp_path / "missing"


def request(**changed: object) -> bytes:
    """Return a request that is taken, but for what is changed."""
    until_ns = boot_time_ns() + 1_000_000_000
    asked = {"id": "x", "to": "b", "timeout_s": 1, "boot": boot_id(), "until_ns": until_ns}
    return json.dumps(asked | changed).encode()


HOSTILE: list[bytes | dict[str, object]] = [
    b"",
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 9000,
    {"id": 1},
    {"to": ["b"]},
    {"timeout_s": -1},
    {"timeout_s": "1"},
    {"until_ns": None},
    {"until_ns": 1},
    {"until_ns": 10**30},
    {"boot": 0},
    {"boot": "1"},
    {"more": 1},
]


@pytest.mark.parametrize("content", HOSTILE)
def test_requests_that_are_none(
    content: bytes | dict[str, object], orders: Path, tmp_path: Path
) -> None:
    from quire.replication.handover_requests import take_request

    def is_taken() -> bool:
        with SafeFolder.at(orders) as folder:
            return take_request(folder, {"b"}) is not None

    asked, secret = orders / "handover.json", tmp_path / "secret"
    asked.write_bytes(content if isinstance(content, bytes) else request(**content))
    assert not is_taken()
    asked.unlink()
    secret.write_bytes(request())
    asked.symlink_to(secret)
    assert not is_taken()
    assert secret.exists()
    asked.unlink()
    asked.write_bytes(request())
    assert is_taken()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_request_and_a_wall_clock_that_is_set(
    hours: int, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts for as long as without, whenever the clock is set: now, or before it is seen."""
    from quire.replication.handover_requests import take_request

    asked = request()
    set_to = time.time() + 3600 * hours
    monkeypatch.setattr(time, "time", lambda: set_to)
    for content, is_taken in ((asked, True), (request(until_ns=boot_time_ns() - 1), False)):
        (orders / "handover.json").write_bytes(content)
        with SafeFolder.at(orders) as folder:
            assert (take_request(folder, {"b"}) is not None) == is_taken


@pytest.mark.check
def test_the_verbs_while_a_producer_appends(orders: Path, tmp_path: Path) -> None:
    """What the producer was told is appended is in both; the old source follows the new one."""
    copy, old, new = tmp_path / "copy", str(free_port()), str(free_port())
    with (
        started("replicate", "source", orders, "--listen", old) as source,
        started(
            *("replicate", "sink", copy, "--from", old, "--name", "b", "--listen", new)
        ) as sink,
        start("produce", dir=orders, count=10**9, id=1, pause_us=100, ack=True) as producer,
    ):
        producer.expect("READY")
        wait_until(lambda: last_index(copy) >= 0, limit_s=WAIT_S)
        ran = run("handover", orders, "--to", f"127.0.0.1:{new}", timeout_s=WAIT_S)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == f"handed over {orders} to=b epoch=2 address=127.0.0.1:{new}\n"
        assert producer.wait() != 0
        written = [int(line.split()[0], 16) for line in producer.rest() if " " in line]
        with quire.open(copy) as queue:
            index = queue.appender().write_bytes(b"of the new source")
        wait_until(lambda: last_index(orders) == index, limit_s=WAIT_S)
        for process in (source, sink):
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=WAIT_S)
            assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()
    assert payloads(orders) == payloads(copy)
    assert written
    assert max(written) < index
    with quire.open(copy, read_only=True) as queue, queue.tailer() as tailer:
        assert set(written) <= {it.index for it in tailer}


@pytest.mark.check
def test_what_a_sink_is_to_do_once_it_is_the_source(orders: Path, tmp_path: Path) -> None:
    """It compresses, and drops a sink that is away."""
    copy, old, new = tmp_path / "copy", str(free_port()), free_port()
    options = ("--name", "b", "--listen", str(new), "--compress", "--drop-after", "0.1")

    async def first_batch() -> int:
        peer = await Peer.connect(new)
        await peer.send(greeting("away", features=["zstd"]), start_frame(None))
        while (kind := (await peer.receive_raw())[0]) not in {BATCH, COMPRESSED_BATCH}:
            pass
        await peer.close()
        return kind

    def members() -> list[str]:
        with quire.open(copy) as queue:
            return [it.name for it in queue.replicas if it.in_sync]

    with (
        started("replicate", "source", orders, "--listen", old) as source,
        started("replicate", "sink", copy, "--from", old, *options),
    ):
        wait_until(lambda: last_index(copy) == last_index(orders) >= 0, limit_s=WAIT_S)
        ran = run("handover", orders, "--to", "b", timeout_s=WAIT_S)
        assert (ran.code, ran.err) == (0, "")
        wait_until(lambda: len(members()) == 1, limit_s=WAIT_S)
        assert asyncio.run(first_batch()) == COMPRESSED_BATCH
        source.kill()
        wait_until(lambda: not members(), limit_s=WAIT_S)


@pytest.mark.check
def test_a_stopped_sink_lets_appends_go_on(orders: Path, tmp_path: Path) -> None:
    copy, port = tmp_path / "copy", str(free_port())
    with (
        started("replicate", "source", orders, "--listen", port),
        started("replicate", "sink", copy, "--from", port, "--name", "b") as sink,
    ):
        wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
        sink.send_signal(signal.SIGSTOP)
        ran = run("handover", orders, "--to", "b", "--timeout", "1", timeout_s=WAIT_S)
        assert ran.code == 1
        assert "appends continue" in ran.err
        sink.send_signal(signal.SIGCONT)
        assert is_open(orders)
        wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
        assert handover(orders, "b").epoch == 2
    assert payloads(copy) == payloads(orders)


async def served(path: Path) -> None:
    with quire.open(path) as queue:
        async with Source(queue):
            pass


STEPS = [
    *[("source", it) for it in ("closed", "drained", "given", "sent", "confirmed")],
    *[("sink", it) for it in ("asked", "kept", "promoted", "answered")],
]


@pytest.mark.check
@pytest.mark.parametrize(("side", "step"), STEPS)
def test_a_kill_at_each_step(side: str, step: str, orders: Path, tmp_path: Path) -> None:
    copy, port = tmp_path / "copy", free_port()
    victim = str(SUPPORT / "handover_victim.py")

    def peer(kind: str, path: Path) -> JavaProcess:
        dies_at = step if kind == side else ""
        return JavaProcess([sys.executable, victim, kind, str(path), str(port), dies_at])

    with peer("source", orders) as source, peer("sink", copy) as sink:
        source.expect("READY")
        wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
        with suppress(ReplicationError):
            handover(orders, "b", timeout_s=3)
        (source if side == "source" else sink).wait()
    before = payloads(orders)
    assert payloads(copy)[: len(before)] == before
    if part(orders)[1] == "source":  # the next source opens what was not given away
        asyncio.run(served(orders))
    opened = (is_open(orders), is_open(copy))
    assert opened != (True, True), (side, step)
    assert opened == EXPECTED[side, step]
    if opened == (False, False):
        assert promote(orders) > part(copy)[0]


EXPECTED = {
    ("source", "closed"): (True, False),
    ("source", "drained"): (True, False),
    ("source", "given"): (False, False),
    ("source", "sent"): (False, True),
    ("source", "confirmed"): (False, True),
    ("sink", "asked"): (False, False),
    ("sink", "kept"): (False, False),
    ("sink", "promoted"): (False, True),
    ("sink", "answered"): (False, True),
}
