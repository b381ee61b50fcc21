"""What handles of a remote queue do where something goes wrong: the same as those at home."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

import quire
from parameters import some
from quire.errors import ClosedError, MessageTooLargeError, ServerSilentError, WireError
from served import WAIT_S, serving

Opens = Callable[[], Any]
Formats = Callable[[str], tuple[Any, Any]]


@pytest.fixture
def places(tmp_path: Path) -> Generator[tuple[Opens, Opens]]:
    """What opens a queue at home, and one of the same messages at a server."""
    with serving(tmp_path / "queues") as (port, _):
        opens: tuple[Opens, Opens] = (
            lambda: quire.open(tmp_path / "home", block_bytes=1 << 16),
            lambda: quire.open(f"quire://127.0.0.1:{port}/far", block_bytes=1 << 16),
        )
        for place in opens:
            with place() as queue, queue.appender() as appender:
                appender.write_many(b"%d" % number for number in range(1, 10))
        yield opens


def one_by_one(tailer: Any) -> None:  # noqa: ANN401 - of any place
    tailer.read_bytes()
    tailer.read_bytes()


def many(tailer: Any) -> None:  # noqa: ANN401
    tailer.read_many(3)
    tailer.read_many(3)


def in_a_loop(tailer: Any) -> None:  # noqa: ANN401
    for payload in tailer.payloads():
        if payload == b"4":
            return


def columns(tailer: Any) -> None:  # noqa: ANN401
    tailer.read_bytes()
    tailer.read_batch(4)


def a_document(tailer: Any) -> None:  # noqa: ANN401
    tailer.read_bytes()
    with tailer.reading_document() as document:
        assert bytes(document.bytes) == b"2"


def moved(tailer: Any) -> None:  # noqa: ANN401
    one_by_one(tailer)
    tailer.to_end()


def committed(tailer: Any) -> None:  # noqa: ANN401
    one_by_one(tailer)
    tailer.commit()


def to_the_end(tailer: Any) -> None:  # noqa: ANN401
    tailer.read_many(100)
    tailer.read_bytes()


READS = [one_by_one, many, in_a_loop, columns, a_document, moved, committed, to_the_end]


@pytest.mark.parametrize("read", some(READS, keep=[0, 1]))
def test_what_was_read_last_comes_again_after_an_exception(
    places: tuple[Opens, Opens], read: Callable[[Any], None]
) -> None:
    found: list[list[bytes | None]] = []
    for place in places:
        with suppress(KeyError), place() as queue, queue.tailer("in a block") as tailer:
            read(tailer)
            raise KeyError
        with suppress(KeyError), place() as queue:
            read(queue.tailer("of the queue"))
            raise KeyError
        with place() as queue:
            read(queue.tailer("left open"))
        with place() as queue, queue.tailer("closed") as tailer:
            read(tailer)
        with place() as queue:
            names = ("in a block", "of the queue", "left open", "closed")
            found.append([queue.tailer(name).read_bytes() for name in names])
    assert found[0] == found[1]


def test_a_read_of_several_batches_is_finished_with_the_next_one(
    places: tuple[Opens, Opens],
) -> None:
    with places[1]() as queue, queue.appender() as appender, queue.tailer("one") as tailer:
        appender.write_many([b"x"] * 100_000)
        assert len(tailer.read_many(90_000)) == 90_000
        assert queue.named_tailers() == [("one", 0)]
        assert len(tailer.read_many(100_000)) == 10_009
        assert tailer.read_bytes() is None
        assert queue.named_tailers() == [("one", queue.first_index + 100_009)]


def calls(queue: Any) -> dict[str, Callable[[], object]]:  # noqa: ANN401
    tailer, group = queue.tailer(), queue.group("g")
    return {
        "before all": lambda: tailer.move_to_index(-1),
        "not a number": lambda: tailer.move_to_index("1"),
        "too large a number": lambda: tailer.move_to_index(2**64),
        "far ahead": lambda: (tailer.move_to_time("2999-01-01"), tailer.read_bytes()),
        "long ago": lambda: (tailer.move_to_time("0001-01-01"), tailer.read_bytes()),
        "a negative count": lambda: tailer.read_many(-1),
        "no count": lambda: tailer.read_many("1"),
        "text that is none": tailer.read_text,
        "text that is none, again": lambda: (tailer.read_bytes(), tailer.read_text())[0],
        "name of a group": lambda: queue.group("a b"),
        "a group at no index": lambda: group.reset("later"),
        "a group before all": lambda: group.reset(-1),
        "a group far ahead": lambda: (group.reset(time="2999-01-01"), group.lag),
        "name of a tailer": lambda: queue.tailer(5),
        "a limit": lambda: queue.appender(limit=0),
        "what is missing": lambda: queue.tailer(on_missing="x"),
        "no bytes": lambda: queue.appender().write_bytes("text"),
    }


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return type(error)


def test_wrong_arguments_are_refused_as_at_home(places: tuple[Opens, Opens]) -> None:
    with places[0]() as home, places[1]() as far:
        found = [{it: outcome(call) for it, call in calls(one).items()} for one in (home, far)]
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["chronicle", "vanilla", "quick-queue"])
def test_only_texts_are_read_as_text(tmp_path: Path, kind: Any) -> None:  # noqa: ANN401
    def opened(port: int) -> Any:  # noqa: ANN401 - of any format
        return cast("Any", quire.open(f"quire://127.0.0.1:{port}/orders", format=kind))

    with (
        serving(tmp_path) as (port, _),
        opened(port) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        appender.write_text("grüße")
        appender.write_text("x" * 50)
        appender.write_bytes(b"\xff")
        assert tailer.read_text() == "grüße"
        assert tailer.read_text() == "x" * 50
        if kind == "chronicle":
            appender.write_bytes("中".encode())
            appender.write_bytes(b"\xb8\x02hi")  # a text as only others write it
        for data in (b"\xff", "中".encode())[: 1 + (kind == "chronicle")]:
            with pytest.raises(WireError):
                tailer.read_text()
            assert tailer.read_bytes() == data
        if kind == "chronicle":
            assert tailer.read_text() == "hi"


def test_a_message_that_is_too_long_is_refused_at_once(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as (port, _),
        quire.open(f"quire://127.0.0.1:{port}/orders", block_bytes=1 << 30) as queue,
        queue.appender() as appender,
    ):
        most = cast("Any", appender).longest
        writes: list[Callable[[bytes], object]] = [
            appender.write_bytes,
            lambda it: appender.write_many([b"first", it]),
        ]
        for write in writes:
            with pytest.raises(MessageTooLargeError, match=f"length=100000000 limit={most} "):
                write(bytes(100_000_000))
        appender.write_many([b"one", bytes(most), b"two"])
        with queue.tailer() as tailer:
            assert [*map(len, tailer.payloads())] == [3, most, 3]


def test_an_append_after_a_silence_is_not_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as (port, process):
        queue = quire.open(f"quire://127.0.0.1:{port}/orders", timeout_s=1.0)
        appender = queue.appender()
        appender.write_bytes(b"before")
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(ServerSilentError):
            appender.write_bytes(bytes(8_000_000))  # more than a socket holds
        process.kill()
        process.wait()
        with serving(tmp_path, "--listen", f"127.0.0.1:{port}"):
            appender.write_bytes(b"after")
            with queue, queue.tailer() as tailer:
                assert [*tailer.payloads()] == [b"before", b"after"]


@pytest.mark.parametrize("kind", ["tailer", "named tailer", "consumer"])
def test_closing_ends_the_waits_of_tasks_and_threads(
    places: tuple[Opens, Opens], kind: str
) -> None:
    def opened(queue: Any) -> Any:  # noqa: ANN401
        if kind == "consumer":
            queue.group("g").reset("end")
            return queue.group("g").consumer()
        found = queue.tailer("name" if kind == "named tailer" else None)
        found.to_end()
        return found

    async def in_a_task(queue: Any) -> object:  # noqa: ANN401
        reader, other = opened(queue), queue.tailer()
        other.to_end()
        waiting: list[Any] = [asyncio.ensure_future(it.aread()) for it in (reader, other)]
        await asyncio.sleep(0.05)  # they are asleep, most often
        reader.close()
        with queue.tailer() as following:  # it may have the number of the socket that was closed
            following.to_end()
            waiting.append(asyncio.ensure_future(following.aread()))
            ended = cast("Any", await asyncio.gather(waiting.pop(0), return_exceptions=True))
            queue.appender().write_bytes(b"news")
            assert [it.data for it in await asyncio.gather(*waiting)] == [b"news"] * 2
        found: BaseException | None = ended[0]
        return found

    def in_a_thread(queue: Any) -> BaseException | None:  # noqa: ANN401
        reader, begins = opened(queue), Event()

        def wait() -> None:
            begins.set()
            for _ in reader.follow(timeout_s=10 * WAIT_S):
                pass

        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(wait)
            begins.wait()
            reader.close()
            return waiting.exception(WAIT_S / 4)

    for place in places:
        with place() as queue:
            assert isinstance(in_a_thread(queue), ClosedError)
            ended = asyncio.run(asyncio.wait_for(in_a_task(queue), WAIT_S))
            assert isinstance(ended, ClosedError)


def test_a_move_that_finds_no_message_leaves_the_tailer_where_one_at_home_is(
    places: tuple[Opens, Opens],
) -> None:
    shown: list[list[object]] = []
    for place in places:
        with place() as queue, queue.tailer() as tailer:
            first: int = tailer.index
            seen = list[object]()
            for away in (0, 1, 8, 9, 20, 1 << 32, -(1 << 32), -first):
                tailer.to_start()
                tailer.read_bytes()
                seen.append((tailer.move_to_index(first + away), tailer.index - first))
                seen.append(tailer.read_bytes())
            shown.append(seen)
    assert shown[0] == shown[1]


def test_maps_with_keys_that_are_no_names_are_appended_as_at_home(
    places: tuple[Opens, Opens],
) -> None:
    for place in places:
        with place() as queue, queue.appender() as appender, queue.tailer() as tailer:
            tailer.to_end()
            appender.write_map(cast("Any", {1: 2, "price": 1.5}))
            assert str(tailer.read()).endswith('{"1":2,"price":1.5})')
            with pytest.raises(TypeError, match="mapping"):
                appender.write_map(cast("Any", [1, 2]))


def test_handles_that_nobody_closes_leave_no_open_socket_even_in_a_cycle(
    places: tuple[Opens, Opens], recwarn: pytest.WarningsRecorder
) -> None:
    queue = places[1]()
    for _ in range(10):
        held: list[Any] = [queue.tailer()]
        assert held[0].read_bytes() == b"1"
        held.append(held)
        del held
        gc.collect()
    queue.close()
    assert not [*recwarn]
