"""Handles of `quire://` addresses: what those of this machine do, through a server."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Literal, cast

import pytest

import quire
from queues import exit_code, fork
from quire.remote import RemoteAppender, RemoteQueue, RemoteTailer
from quire.remote.address import parse
from quire.remote.connection import Server
from served import serving

WAIT_S = 20.0


@quire.message(alias="RemoteQuote")
@dataclass
class Quote:
    symbol: str
    price: float


class Market:
    def price(self, symbol: str, price: float) -> None: ...
    def halt(self, symbol: str) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path / "queues") as (port, _):
        yield f"quire://127.0.0.1:{port}"


def opened(address: str, **options: Any) -> RemoteQueue:  # noqa: ANN401
    queue = cast("object", quire.open(address, **options))
    assert isinstance(queue, RemoteQueue)
    return queue


@pytest.fixture
def queue(server: str) -> Iterator[RemoteQueue]:
    with opened(f"{server}/orders") as queue:
        yield queue


def test_what_is_written_at_home_and_remotely_is_the_same(
    queue: RemoteQueue, tmp_path: Path
) -> None:
    home = quire.open(tmp_path / "home")
    for appender in (home.appender(), queue.appender()):
        index = appender.write_bytes(b"bytes")
        assert appender.write_text("grüße") == index + 1
        appender.write_map({"symbol": "EURUSD", "legs": [1, 2]})
        appender.write_message(Quote("EURUSD", 1.1))
        appender.write_message(Quote("EURUSD", 1.1), typed=True)
        appender.write_yaml("a: 1")
        appender.write_json('{"b": 2}')
        appender.write_many(b"%d" % number for number in range(10))
        appender.topic("LDN").write_text("hello")
        appender.topic("LDN").write_map({"n": 1})
        appender.topic("LDN").method_writer(Market).halt("EURUSD")
        asyncio.run(appender.topic("LDN").awrite_text("hello"))
        market = appender.method_writer(Market)
        market.price("EURUSD", 1.5)
        market.halt(symbol="EURUSD")
        assert appender.last_index_appended is not None
    served = quire.open(tmp_path / "queues" / "orders", read_only=True)
    kinds = [(it.read_many(100)) for it in (home.tailer(), served.tailer(), queue.tailer())]
    assert kinds[0] == kinds[1] == kinds[2]
    assert len(kinds[0]) == queue.entry_count == 23
    assert (queue.first_index, queue.last_index) == (served.first_index, served.last_index)


def test_each_way_of_reading(queue: RemoteQueue) -> None:
    appender, tailer = queue.appender(), queue.tailer()
    assert isinstance(appender, RemoteAppender)
    assert isinstance(tailer, RemoteTailer)
    assert tailer.read() is None
    first = appender.write_text("hello")
    appender.write_map({"n": 1})
    appender.write_message(Quote("EURUSD", 1.1))
    last = appender.write_many([b"one", b"two", b"three"])
    assert tailer.index == first
    assert tailer.read_text() == "hello"
    assert tailer.read_map() == {"n": 1}
    assert tailer.read_message(Quote) == Quote("EURUSD", 1.1)
    assert tailer.read_bytes() == b"one"
    assert [it.data for it in tailer] == [b"two", b"three"]
    assert tailer.last_read_index == last
    assert not tailer.move_to_index(first + 100)
    assert tailer.move_to_index(first + 1)
    assert tailer.read_map() == {"n": 1}
    tailer.to_start()
    assert tailer.read_text() == "hello"
    tailer.to_end()
    assert tailer.read_many(10) == []
    assert appender.write_bytes(b"more") == tailer.index
    assert [*tailer.payloads()] == [b"more"]
    assert not tailer.spin(timeout_s=0)


def test_messages_that_do_not_decode_are_read_again(queue: RemoteQueue) -> None:
    queue.appender().write_map({"n": 1})
    with queue.tailer() as tailer:
        with pytest.raises(quire.errors.WireError):
            tailer.read_message(Quote)
        assert tailer.read_map() == {"n": 1}


def test_waiting_threads_are_woken_by_appends(queue: RemoteQueue) -> None:
    found: list[bytes] = []

    def follow() -> None:
        with queue.tailer() as tailer:
            for message in tailer.follow(timeout_s=60):
                found.append(message.data)
                if message.data == b"end":
                    return

    thread = Thread(target=follow)
    thread.start()
    with queue.appender() as appender:
        for number in range(100):
            appender.write_bytes(b"%d" % number)
        appender.write_bytes(b"end")
    thread.join()
    assert found == [*(b"%d" % number for number in range(100)), b"end"]


def test_event_loops(queue: RemoteQueue) -> None:
    async def follow() -> list[bytes]:
        async with queue.tailer() as tailer:
            found = [await tailer.aread_bytes()]
            async for message in tailer.afollow():
                found.append(message.data)
                if len(found) == 103:
                    return [it for it in found if it is not None]
        raise AssertionError

    async def work() -> list[bytes]:
        reading = asyncio.create_task(follow())
        async with queue.appender(limit=10) as appender:
            await asyncio.gather(*(appender.awrite_bytes(b"%d" % n) for n in range(100)))
            await appender.awrite_many([b"x", b"y"])
            await appender.awrite_text("z")
        return await reading

    found = asyncio.run(work())
    assert found == [*(b"%d" % number for number in range(100)), b"x", b"y", b"\xe1z"]


def test_many_messages(queue: RemoteQueue) -> None:
    payloads = [b"%d" % number for number in range(100_000)]
    last = queue.appender().write_many(payloads)
    with queue.tailer() as tailer:
        found: list[bytes] = []
        while batch := tailer.read_many(7_777):
            found += batch
        assert found == payloads
        assert tailer.last_read_index == last == queue.last_index


def test_columns_and_data_frames(queue: RemoteQueue) -> None:
    pa = pytest.importorskip("pyarrow")
    rows = {"symbol": ["EURUSD", "GBPUSD"], "price": [1.1, 1.2]}
    queue.appender().write_batch(pa.RecordBatch.from_pydict(rows))
    queue.appender().write_batch(pa.array([b"raw"]))
    schema = {"symbol": "utf8", "price": "float64"}
    with queue.tailer() as tailer:
        batch = tailer.read_batch(2, schema=schema)
        assert batch.select(["symbol", "price"]).to_pydict() == rows
        assert tailer.read_batch().column("payload").to_pylist() == [b"raw"]
    last = queue.last_index
    assert queue.to_arrow(schema, end=last).column("price").to_pylist() == [1.1, 1.2]
    assert queue.scan(schema, end=last).to_table(columns=["symbol"]).num_rows == 2


def test_places_by_time_and_key(queue: RemoteQueue) -> None:
    appender = queue.appender()
    for second in range(0, 600, 60):
        appender.write_map({"at": 1_705_314_600 + second, "order": second})
    with queue.tailer() as tailer:
        assert tailer.move_to_time("2024-01-15T10:32:00", time_field="at")
        assert tailer.read_map() == {"at": 1_705_314_720, "order": 120}
        assert tailer.move_to(121, by="order")
        assert tailer.read_map() == {"at": 1_705_314_780, "order": 180}
        assert not tailer.move_to_time("2030-01-01", time_field="at")
        with pytest.raises(ValueError, match="no message has the field"):
            tailer.move_to_time("2024-01-15", time_field="nothing")


def test_named_tailers(queue: RemoteQueue, tmp_path: Path) -> None:
    queue.appender().write_many([b"one", b"two", b"three"])
    with queue.tailer("risk") as tailer:
        assert tailer.read_bytes() == b"one"
        with pytest.raises(quire.errors.TailerInUseError, match=r"queue=orders \(close it"):
            queue.tailer("risk")
    with queue.tailer("risk") as tailer:
        assert tailer.read_bytes() == b"two"
    assert queue.named_tailers() == [("risk", queue.last_index)]
    with quire.open(tmp_path / "queues" / "orders") as home, home.tailer("risk") as own:
        assert own.read_bytes() == b"three"
    assert queue.rename_tailer("risk", "audit")
    assert queue.delete_tailer("audit")
    assert queue.named_tailers() == []


def test_groups(queue: RemoteQueue) -> None:
    queue.appender().write_many(b"%d" % number for number in range(100))
    group = queue.group("billing", ack_timeout_s=60)
    with group.consumer("c1") as one, group.consumer("c2") as other:
        first = one.read()
        assert first is not None
        assert (first.data, first.delivery_count, first.redelivered) == (b"0", 1, False)
        assert first.extend(90)
        assert first.ack()
        assert not first.ack()
        second = one.read()
        assert second is not None
        assert second.nack()
        again = other.read_many(100)
        mine = one.read_many(1000)
        assert {*again.payloads(), *mine.payloads()} == {b"%d" % it for it in range(1, 100)}
        assert {it.consumer for it in group.pending()} <= {"c1", "c2", None}
        assert other.ack_many(again) == len(again)
        assert one.ack_many(mine) == len(mine)
        assert group.lag == 0
        assert {it.name for it in group.state().members} == {"c1", "c2"}
    assert [it.name for it in queue.groups()] == ["billing"]
    group.reset()
    assert group.lag == 100
    group.reset("end")
    assert group.lag == 0
    assert group.delete()


def test_what_a_lost_member_had_goes_to_another(queue: RemoteQueue) -> None:
    queue.appender().write_many([b"one", b"two"])
    group = queue.group("billing")
    lost = group.consumer("lost")
    message = lost.read()
    assert message is not None
    lost._membership._connection.drop()  # type: ignore[attr-defined] # its process dies
    with group.consumer("other") as other:
        found = {it.data for _, it in zip(range(2), other.follow(timeout_s=60), strict=False)}
    assert found == {b"one", b"two"}
    assert not message.ack()


def test_a_consumer_that_has_waited_takes_no_more_than_it_is_asked_for(queue: RemoteQueue) -> None:
    group = queue.group("billing")
    with group.consumer("one") as one, group.consumer("other") as other:
        membership: Any = getattr(one, "_membership")  # noqa: B009 - as it is private
        assert not membership._poll()  # it waits for the next message
        queue.appender().write_many([b"0", b"1"])
        assert membership._connection.wait(WAIT_S)
        found = [it.data for it in (one.read(), other.read()) if it is not None]
        assert found == [b"0", b"1"]


def test_a_forked_process_appends_in_an_event_loop(queue: RemoteQueue) -> None:
    appender = queue.appender()
    asyncio.run(appender.awrite_text("parent"))

    def child() -> None:
        asyncio.run(asyncio.wait_for(appender.awrite_text("child"), WAIT_S))
        appender.close()

    assert exit_code(fork(child)) == 0
    asyncio.run(appender.awrite_text("parent again"))
    with queue.tailer() as tailer:
        found = [tailer.read_text() for _ in range(3)]
    assert found == ["parent", "child", "parent again"]


def test_a_closed_appender_says_so_in_an_event_loop(queue: RemoteQueue) -> None:
    appender = queue.appender()
    asyncio.run(appender.awrite_text("hello"))
    appender.close()
    with pytest.raises(quire.errors.ClosedError):
        asyncio.run(appender.awrite_text("hello"))


def test_a_consumer_waits_in_an_event_loop(queue: RemoteQueue) -> None:
    async def work() -> bytes:
        async with queue.group("billing").consumer() as consumer, queue.appender() as appender:
            reading = asyncio.create_task(consumer.aread())
            await appender.awrite_bytes(b"hello")
            message = await reading
            assert message is not None
            assert message.ack()
            return message.data

    assert asyncio.run(work()) == b"hello"


def test_each_task_that_shares_a_consumer_is_woken(queue: RemoteQueue) -> None:
    async def work() -> list[bytes]:
        async with queue.group("billing").consumer() as consumer:
            all_have_one = asyncio.Barrier(3)

            async def take() -> bytes:
                message = await consumer.aread()
                assert message is not None
                await all_have_one.wait()  # it works on the message meanwhile
                assert message.ack()
                return message.data

            taking = [asyncio.create_task(take()) for _ in range(3)]
            await asyncio.sleep(0.1)  # they are asleep, most often
            queue.appender().write_many([b"0", b"1", b"2"])
            return await asyncio.wait_for(asyncio.gather(*taking), WAIT_S)

    assert sorted(asyncio.run(work())) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_older_formats(server: str, kind: Literal["vanilla", "quick-queue"]) -> None:
    with opened(f"{server}/old", format=kind) as queue, queue.tailer() as tailer:
        appender = queue.appender()
        indexes = [appender.write_bytes(b"one"), appender.write_text("two")]
        appender.write_many([b"three"])
        assert [it.index for it in tailer][:2] == indexes
        tailer.to_start()
        assert tailer.read_many(10) == [b"one", b"two", b"three"]
        with pytest.raises(quire.errors.UnsupportedError, match="raw bytes"):
            appender.write_map({"n": 1})


def test_options_of_new_queues(server: str, tmp_path: Path) -> None:
    with opened(f"{server}/deep/one", roll_cycle="FAST_HOURLY", source_id=7) as queue:
        assert queue.roll_cycle.name == "FAST_HOURLY"
        assert queue.source_id == 7
        assert pickle.loads(pickle.dumps(queue)).path == queue.path
        queue.appender().write_bytes(b"one")
    with pytest.raises(quire.errors.RollCycleMismatchError, match="omit roll_cycle"):
        quire.open(f"{server}/deep/one", roll_cycle="DAILY")
    assert opened(f"{server}/deep/one", roll_cycle="FAST_HOURLY").last_index is not None
    with pytest.raises(quire.errors.UnsupportedError, match="durability"):
        quire.open(f"{server}/deep/one", durability="each")
    with pytest.raises(quire.errors.NotAQueueError, match="nothing"):
        quire.open(f"{server}/nothing", create=False)
    with pytest.raises(quire.errors.ReadOnlyError):
        quire.open(f"{server}/deep/one", read_only=True).appender()
    with pytest.raises(quire.errors.UnsupportedError, match="token="):
        quire.open(tmp_path / "home", token="secret")  # noqa: S106
    for wrong in ("quire://127.0.0.1/x", "quire://a:1", "quire://u:p@a:1/x", "quire://a:1/x?y=1"):
        with pytest.raises(quire.errors.OptionsError):
            quire.open(wrong)
    with pytest.raises(quire.errors.ServerLostError, match="cannot reach"):
        quire.open("quire://127.0.0.1:1/x")


def test_a_token_is_in_no_repr() -> None:
    server = Server(parse("quire://127.0.0.1:1/x"), "secret", None, 1.0)
    assert "secret" not in f"{server!r} {server}"


@pytest.mark.parametrize(
    ("journal", "remote"),
    [
        (quire.JournalQueue, RemoteQueue),
        (quire.JournalAppender, RemoteAppender),
        (quire.JournalTailer, RemoteTailer),
    ],
)
def test_what_is_missing_says_why(queue: RemoteQueue, journal: type, remote: type) -> None:
    handles: dict[type, Any] = {RemoteQueue: queue}
    handles[RemoteAppender], handles[RemoteTailer] = queue.appender(), queue.tailer()
    for name in dir(journal):
        if name.startswith("_") or inspect.getattr_static(remote, name, None) is not None:
            continue
        with pytest.raises(quire.errors.UnsupportedError, match=rf"remote queue: {name} \("):
            getattr(handles[remote], name)
