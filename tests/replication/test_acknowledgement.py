"""What an append, a tailer and retention promise about replicas, with real processes that die."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

import quire
from cli_runs import run
from event_loops import until
from parameters import some
from queues import DAY_MS, START_MS
from quire._native import ReplicaStates
from quire.cli.output.row_formats import json_text
from quire.errors import (
    ForkedError,
    ReplicationError,
    TableLostError,
    UnsupportedError,
    WaitTimeoutError,
    WriterInUseError,
)
from quire.replication import Sink, Source, promote, standing
from replicas import wait_until
from replicated import Replicated, replicated
from waiting_writes import every_write_waits

SHORT_S = 0.3
WAIT_S = 20.0


@pytest.fixture
def pair(tmp_path: Path) -> Generator[Replicated]:
    """A queue with one sink, ``b``, which is in sync."""
    with replicated(tmp_path, "b") as running:
        with quire.open(running.path) as queue:
            wait_until(lambda: [it.in_sync for it in queue.replicas] == [True])
        yield running


def payloads(path: Path, **options: Any) -> list[bytes]:  # noqa: ANN401
    opened = cast("quire.JournalQueue", quire.open(path, create=False, **options))
    with opened as queue, queue.tailer() as tailer:
        return [*tailer.payloads()]


def test_what_all_acknowledged_survives_the_source(pair: Replicated) -> None:
    with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
        for number in range(100):
            appender.write_bytes(b"%d" % number, wait="all")
        pair.source.kill()
        pair.sinks["b"].kill()
    promote(pair.copies["b"])
    assert payloads(pair.copies["b"]) == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("wait", some(["any", "all", 1], keep=[1]))
def test_an_append_waits_for_the_sink(pair: Replicated, wait: Any) -> None:  # noqa: ANN401
    with quire.open(pair.path, timeout_s=SHORT_S) as queue, queue.appender() as appender:
        first = appender.write_bytes(b"first")
        appender.acknowledged(first, wait=wait, timeout_s=WAIT_S)
        pair.sinks["b"].stop()
        with pytest.raises(WaitTimeoutError, match="stays in the queue") as caught:
            appender.write_bytes(b"second", wait=wait)
        assert caught.value.acknowledged == {"b": first}
        assert caught.value.index == queue.last_index != first
        assert payloads(pair.path) == [b"first", b"second"]
        pair.sinks["b"].go_on()
        assert caught.value.index is not None
        appender.acknowledged(caught.value.index, wait=wait, timeout_s=WAIT_S)
        assert queue.replicas[0].acknowledged_index == queue.last_index
    assert payloads(pair.copies["b"]) == [b"first", b"second"]


@pytest.mark.check
def test_every_way_to_write_waits(pair: Replicated) -> None:
    with quire.open(pair.path) as patient, quire.open(pair.path, timeout_s=SHORT_S) as queue:
        every_write_waits(patient, queue, pair.sinks["b"], many=[b"x", b"y"])


def test_a_mode_that_cannot_be_kept_is_refused_before_the_append(tmp_path: Path) -> None:
    with quire.open(tmp_path / "alone") as queue, queue.appender() as appender:
        with pytest.raises(ReplicationError, match="not replicated"):
            appender.write_bytes(b"x", wait="any")
        with pytest.raises(ReplicationError, match="not replicated"):
            appender.in_flight()
        for wrong in ("some", 0, -1, 1.5):
            with pytest.raises((TypeError, ValueError), match="wait must be"):
                appender.write_bytes(b"x", wait=wrong)  # type: ignore[arg-type]
        ReplicaStates.open_or_create(queue.path)
        with pytest.raises(ValueError, match="metadata"):
            appender.writing_document(metadata=True, wait="any")
        assert queue.entry_count == 0
    with (
        quire.open(tmp_path / "alone", buffer_mode="async") as queue,
        pytest.raises(UnsupportedError, match="wait="),
    ):
        queue.appender().write_bytes(b"x", wait="any")


def test_replicas_of_another_queue_at_the_path_acknowledge_nothing(tmp_path: Path) -> None:
    path, clock = tmp_path / "queue", quire.ManualClock(START_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        index = appender.write_bytes(b"x")
        path.rename(tmp_path / "moved")
        quire.open(path, clock=clock).close()
        states = ReplicaStates.open_or_create(path)
        slot = states.slot_of("b", "host:1")
        states.set_member(slot, True)  # noqa: FBT003 - positional alone
        states.note(slot, sent=index + 1, acknowledged=index + 1, time_ns=1)
        with pytest.raises(TableLostError):
            appender.acknowledged(index, wait="any")
        with pytest.raises(TableLostError):
            appender.write_bytes(b"y", wait="any")
    assert payloads(tmp_path / "moved") == [b"x"]


def test_all_is_each_member_also_one_that_is_away(tmp_path: Path) -> None:
    with replicated(tmp_path, "b", "c") as running:  # noqa: SIM117 - it is to be there
        with quire.open(running.path, timeout_s=SHORT_S) as queue, queue.appender() as appender:
            wait_until(lambda: [it.in_sync for it in queue.replicas] == [True, True])
            appender.acknowledged(appender.write_bytes(b"x"), wait=2, timeout_s=WAIT_S)
            running.sinks["c"].kill()
            index = appender.write_bytes(b"y")
            appender.acknowledged(index, wait="any", timeout_s=WAIT_S)
            for wait in ("all", 2):
                with pytest.raises(WaitTimeoutError) as caught:
                    appender.write_bytes(b"z", wait=wait)
            found = caught.value.acknowledged
            assert found.keys() == {"b", "c"}
            assert (found["c"] or 0) < index
            running.start_source_again()
            wait_until(lambda: [it.connected for it in queue.replicas] == [True, False])
            with pytest.raises(WaitTimeoutError):  # the set is kept over restarts of the source
                appender.write_bytes(b"z", wait="all")
            result = run("replicate", "forget", running.path, "c")
            assert (result.code, result.out, result.err) == (0, "forgot c\n", "")
            appender.acknowledged(appender.write_bytes(b"z"), wait="all", timeout_s=WAIT_S)
            assert run("replicate", "forget", running.path, "c").code == 1
            running.start_again("c")
            wait_until(lambda: [it.in_sync for it in queue.replicas] == [True, True])


def test_a_sink_that_is_away_for_too_long_is_dropped(tmp_path: Path) -> None:
    async def serve(queue: quire.JournalQueue) -> None:
        states = ReplicaStates.open_or_create(queue.path)
        states.set_member(states.slot_of("away", "host:1"), True)  # noqa: FBT003
        async with Source(queue, drop_after_s=0.01):
            await asyncio.to_thread(wait_until, lambda: not queue.replicas[0].in_sync)

    with quire.open(tmp_path / "queue") as queue:
        asyncio.run(asyncio.wait_for(serve(queue), WAIT_S))


@pytest.mark.parametrize("busy", [False, True])
def test_of_two_sinks_of_one_name_the_later_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, busy: bool
) -> None:
    """The earlier one ends by name; what it had counts no more, and the later one's does."""
    text = "another sink of this name has connected"

    async def serve(queue: quire.JournalQueue) -> None:
        index = queue.appender().write_text("x")
        async with Source(queue, busy=busy) as source:

            def sink(copy: str) -> Sink:
                return Sink(tmp_path / copy, port=source.address[1], name="b", busy=busy)

            with pytest.raises(ReplicationError, match=text):  # noqa: PT012
                async with sink("earlier") as earlier:
                    await source.acknowledged(index)
                    async with sink("later") as later:
                        with suppress(ReplicationError):
                            await asyncio.wait_for(earlier.run_forever(), WAIT_S)
                        await until(lambda: len(source.sinks) == 1)
                        last = await asyncio.to_thread(queue.appender(wait="all").write_text, "y")
                        assert later.last_index == last != earlier.last_index
                        found = [(it.in_sync, it.connected) for it in queue.replicas]
                        assert found == [(True, True)]

    with quire.open(tmp_path / "queue", timeout_s=WAIT_S) as queue:
        asyncio.run(serve(queue))
    assert [text in it.getMessage() for it in caplog.records].count(True) == 1


def test_a_queue_has_one_source(pair: Replicated) -> None:
    async def serve(queue: quire.JournalQueue) -> None:
        async with Source(queue):
            pass

    with quire.open(pair.path) as queue, pytest.raises(WriterInUseError, match="another source"):
        asyncio.run(serve(queue))


def test_messages_in_flight_resolve_in_order(pair: Replicated) -> None:
    resolved: list[int] = []
    with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
        with appender.in_flight(8) as flight:
            futures = [flight.write_bytes(b"%d" % number) for number in range(500)]
            for future in futures:
                future.add_done_callback(lambda done: resolved.append(done.result()))
        assert all(future.done() for future in futures)
        found = [future.result() for future in futures]
        assert found == sorted(found)
        assert found[-1] == queue.last_index
        assert sorted(resolved) == found
        assert queue.replicas[0].acknowledged_index == found[-1]


@pytest.mark.check
def test_no_more_than_the_limit_is_in_flight(pair: Replicated) -> None:
    with quire.open(pair.path, timeout_s=SHORT_S) as queue, queue.appender() as appender:
        pair.sinks["b"].stop()
        flight = appender.in_flight(3)
        futures = [flight.write_bytes(b"x") for _ in range(3)]
        assert not any(future.done() for future in futures)
        flight.write_bytes(b"y")  # waits for the oldest, and then there is room
        late = futures[0].exception()
        assert isinstance(late, WaitTimeoutError)
        assert f"waited_s={SHORT_S}" in str(late)
        with pytest.raises(WaitTimeoutError), flight:
            pass
        assert queue.entry_count == 4
        pair.sinks["b"].go_on()


def test_a_future_of_an_acknowledgement_is_one_of_the_library(pair: Replicated) -> None:
    """It is made whole once somebody asks, before or after it has its result."""

    async def wrapped(appender: quire.JournalAppender, index: int) -> int:
        return await asyncio.wrap_future(appender.when_acknowledged(index))

    with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
        pair.sinks["b"].stop()
        indexes = [appender.write_bytes(b"x") for _ in range(4)]
        late, first, whole, _ = (appender.when_acknowledged(it) for it in reversed(indexes))
        assert not wait([whole], timeout=0).done
        assert (late.cancel(), whole.cancel(), late.cancelled(), late.running()) == (0, 0, 0, 1)
        with pytest.raises(TimeoutError):
            first.result(0)
        pair.sinks["b"].go_on()
        assert wait([late, first, whole], timeout=WAIT_S).not_done == set()
        assert [it.result() for it in (whole, first, late)] == indexes[1:]
        assert {it.result() for it in as_completed([first, whole, late])} == {*indexes[1:]}
        assert (late.exception(), late.done(), late.cancel()) == (None, True, False)
        assert not hasattr(late, "of_another_class")
        assert asyncio.run(wrapped(appender, indexes[0])) == indexes[0]
        with appender.in_flight(1) as flight:
            one = flight.write_text("one")
        assert (one.done(), one.running(), one.result()) == (True, False, queue.last_index)
        assert "finished" in repr(one)


def test_an_acknowledgement_is_awaited_and_calls_back(pair: Replicated) -> None:
    called = threading.Event()

    async def wait(appender: quire.JournalAppender) -> None:
        await appender.aacknowledged(await appender.awrite_bytes(b"x"))

    with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
        asyncio.run(wait(appender))
        index = appender.write_bytes(b"y")
        appender.when_acknowledged(index).add_done_callback(lambda _: called.set())
        assert called.wait(WAIT_S)


def test_a_signal_ends_a_wait_at_once(pair: Replicated) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, end)
    try:
        with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
            pair.sinks["b"].stop()
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                appender.write_bytes(b"x", wait="all")
            assert payloads(pair.path) == [b"x"]
            pair.sinks["b"].go_on()
            appender.write_bytes(b"y", wait="all")
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.check
def test_several_appenders_wait_at_once(pair: Replicated) -> None:
    def write(number: int) -> int:
        with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
            return appender.write_bytes(b"%d" % number, wait="all")

    with ThreadPoolExecutor(8) as pool:
        indexes = [*pool.map(write, range(40))]
    assert len(set(indexes)) == 40
    assert len(payloads(pair.copies["b"])) == 40


def test_a_forked_child_opens_the_queue_again(pair: Replicated) -> None:
    with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
        appender.write_bytes(b"x", wait="all")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                appender.write_bytes(b"y", wait="all")
            except ForkedError:
                with quire.open(pair.path, timeout_s=WAIT_S) as own:
                    own.appender().write_bytes(b"y", wait="all")
                code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Mode 2.


def test_a_tailer_never_sees_what_is_lost(pair: Replicated) -> None:
    options: dict[str, Any] = {"read_after_replica_acknowledged": True}
    with quire.open(pair.path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
        appender.write_bytes(b"kept", wait="all")
        pair.sinks["b"].stop()
        appender.write_many([b"lost", b"lost, too"])
        assert payloads(pair.path) == [b"kept", b"lost", b"lost, too"]
        assert payloads(pair.path, **options) == [b"kept"]
        pair.source.kill()
        pair.sinks["b"].kill()
    assert payloads(pair.path, **options) == [b"kept"]
    promote(pair.copies["b"])
    assert payloads(pair.copies["b"], **options) == [b"kept"]


@pytest.mark.check
def test_every_way_of_reading_is_held_back(pair: Replicated) -> None:
    with (
        quire.open(pair.path, read_after_replica_acknowledged=True, timeout_s=WAIT_S) as queue,
        queue.appender() as appender,
    ):
        appender.write_text("a", wait="all")
        pair.sinks["b"].stop()
        appender.write_text("b")
        with queue.tailer() as tailer:
            assert tailer.read_many(10) == [appender_bytes("a")]
            assert tailer.read_bytes() is None
            assert tailer.read_text() is None
            assert not [*tailer]
            with tailer.reading_document() as document:
                assert not document.is_present
            with pytest.raises(WaitTimeoutError):
                tailer.wait(timeout_s=0.05)
            tailer.to_end()
            assert tailer.read_bytes() is None
            tailer.direction = "backward"
            tailer.to_end()
            assert tailer.read_text() == "a"
            assert asyncio.run(tailer.aread(timeout_s=0)) is None
        with queue.tailer("named") as named:
            assert [it.to_text() for it in named] == ["a"]
        with queue.group("g").consumer() as consumer:
            first = consumer.read()
            assert first is not None
            first.ack()
            assert consumer.read() is None
        pair.sinks["b"].go_on()
        with queue.tailer("named") as named:
            named.wait(timeout_s=WAIT_S)
            assert named.read_text() == "b"


def appender_bytes(text: str) -> bytes:
    return b"\xe1" + text.encode() if len(text) == 1 else text.encode()


def test_a_sleeping_reader_wakes_when_a_replica_acknowledges(pair: Replicated) -> None:
    with quire.open(pair.path, read_after_replica_acknowledged=True) as queue:
        pair.sinks["b"].stop()
        queue.appender().write_bytes(b"x")
        with queue.tailer() as tailer, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tailer.wait, timeout_s=WAIT_S)
            pair.sinks["b"].go_on()
            waiting.result(WAIT_S)
            assert tailer.read_bytes() == b"x"


def test_after_a_start_of_the_machine_a_connection_shows_what_both_have(tmp_path: Path) -> None:
    path, copy = tmp_path / "queue", tmp_path / "copy"

    async def connect(source: Source, last: int) -> None:
        async with Sink(copy, port=source.address[1], name="b") as sink:
            await sink.stored(last)
            await source.acknowledged(last)

    async def replicated() -> None:
        with quire.open(path, timeout_s=WAIT_S) as queue, queue.appender() as appender:
            last = appender.write_bytes(b"x")
            async with Source(queue) as source:
                await connect(source, last)
                with (copy / "replicas.quire").open("r+b") as file:
                    file.seek(8)  # which start of the machine the file is about
                    file.write(bytes(range(8)))
                assert payloads(copy, read_after_replica_acknowledged=True) == []
                await connect(source, last)
                assert payloads(copy, read_after_replica_acknowledged=True) == [b"x"]

    asyncio.run(replicated())


def test_where_nothing_was_acknowledged_nothing_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with quire.open(path) as queue:
        index = queue.appender().write_bytes(b"x")
        options: dict[str, Any] = {"read_after_replica_acknowledged": True}
        assert payloads(path, **options) == []
        queue._note_acknowledged(index)  # as Java's source does
        assert payloads(path, **options) == [b"x"]
        assert payloads(path, read_only=True, **options) == [b"x"]


def test_the_option_is_set_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with quire.open(tmp_path / "queue") as queue:
        queue.appender().write_bytes(b"x")
    monkeypatch.setenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED", "1")
    assert payloads(tmp_path / "queue") == []


def test_stat_shows_the_replicas(pair: Replicated) -> None:
    import json

    with quire.open(pair.path, timeout_s=WAIT_S) as queue:
        queue.appender().write_bytes(b"x", wait="all")
        last = queue.last_index
    found = json.loads(run("stat", pair.path, "--json").out)["replication"]
    assert (found["role"], found["in_sync"]) == ("source", ["b"])
    (replica,) = found["replicas"]
    assert replica["name"] == "b"
    assert replica["acknowledged_index"] == f"{last:#x}"
    assert replica["lag_messages"] == 0
    assert "b " in run("stat", pair.path).out


@pytest.mark.check
def test_json_has_no_number_that_json_does_not_have(tmp_path: Path) -> None:
    """A replica that has acknowledged nothing lags for an infinite time."""
    import json

    path = tmp_path / "queue"
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"x")
        standing.write(path, standing.Standing.new().as_role("source"))
        states = ReplicaStates.open_or_create(path)
        states.set_member(states.slot_of("away", "host:1"), True)  # noqa: FBT003
        assert queue.replicas[0].lag_s == float("inf")

    def refused(text: str) -> float:
        raise AssertionError(text)

    for arguments in (("--json",), ("--format", "json"), ("--format", "jsonl")):
        found: Any = json.loads(run("stat", path, *arguments).out, parse_constant=refused)
        facts: Any = found if "--json" in arguments or "jsonl" in arguments else found[0]
        assert facts["replication"]["replicas"][0]["lag_s"] is None
    assert json_text({"a": [float("nan"), (-float("inf"), 1.5)]}) == '{"a": [null, [null, 1.5]]}'


def test_retention_keeps_what_a_member_of_the_set_lacks(tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    path = tmp_path / "queue"
    with quire.open(path, clock=clock, roll_cycle="FAST_DAILY") as queue:
        appender = queue.appender()
        indexes: list[int] = []
        for _ in range(4):
            indexes.append(appender.write_bytes(b"x"))
            clock.advance(DAY_MS)
        states = ReplicaStates.open_or_create(path)
        slot = states.slot_of("away", "host:1")
        states.note(slot, sent=indexes[1], acknowledged=indexes[1], time_ns=1)
        states.set_member(slot, True)  # noqa: FBT003 - positional alone
    kept = quire.prune(path, max_cycles=1, stale_after="1d", dry_run=True).kept
    assert "kept for a replica that is in sync: replica=away" in kept[0].reason
    assert len(quire.prune(path, max_cycles=1, stale_after="1d").removed) == 1
    assert states.forget("away")
    assert len(quire.prune(path, max_cycles=1, stale_after="1d").removed) == 2
