"""A handover that fails or is cancelled: the queue is open again, or its source ends."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import quire
from authority import Authority
from event_loops import until
from quire import _native
from quire.errors import AppendLockedError, GroupError, HandoverError
from quire.replication import Sink, Source, positions, promote, replica, standing, succession
from quire.replication.node_source import NodeSource, Office
from quire.replication.original import Original
from quire.replication.standing import Standing

WAIT_S = 60.0
NO_ROOM = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def part(path: Path) -> tuple[int, str]:
    found = standing.read(path)
    assert found is not None
    return found.epoch, found.role


def is_open(path: Path) -> bool:
    """Whether anybody may append to a queue."""
    try:
        with quire.open(path, create=False) as queue:
            queue.appender().write_bytes(b"probe")
    except AppendLockedError:
        return False
    return True


def is_joinable(queue: quire.JournalQueue, name: str) -> bool:
    try:
        queue.group(name).consumer().close()
    except GroupError:
        return False
    return True


@asynccontextmanager
async def replicated(orders: Path, copy: Path) -> AsyncGenerator[tuple[quire.JournalQueue, Source]]:
    """A queue and its source, with a sink ``b`` that has everything."""
    with quire.open(orders) as queue:
        async with Source(queue) as source:
            sink = Sink(copy, port=source.address[1], name="b", reconnect_s=0.01)
            async with sink:
                await source.acknowledged(queue.last_index or 0)
                yield queue, source


async def hands_over(queue: quire.JournalQueue, source: Source, orders: Path) -> None:
    """Check that the queue is open, and can be handed over."""
    assert (part(orders), source.epoch) == ((1, "source"), 1)
    queue.appender().write_bytes(b"three")
    assert (await source.hand_over("b")).epoch == 2
    await asyncio.wait_for(source.run_forever(), WAIT_S)
    assert part(orders) == (2, "sink")


class Disk:
    """What writes standings, and may be full, or fail once it has written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self._path, self._real = str(path), standing.write_of
        self.failures: list[str] = []
        monkeypatch.setattr(standing, "write_of", self._write)

    def _write(self, queue: quire.JournalQueue, member: Standing) -> None:
        failure = self.failures.pop(0) if queue.path == self._path and self.failures else ""
        if failure != "full":
            self._real(queue, member)
        if failure:
            raise NO_ROOM


@pytest.mark.parametrize("failure", ["full", pytest.param("written", marks=pytest.mark.check)])
def test_a_standing_that_cannot_be_written(
    failure: str, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written or not, when the error comes: it is that of the source again."""

    async def work() -> None:
        async with replicated(orders, tmp_path / "copy") as (queue, source):
            disk = Disk(monkeypatch, orders)
            disk.failures = [failure]
            with pytest.raises(OSError, match="No space left"):
                await source.hand_over("b")
            await hands_over(queue, source, orders)

    asyncio.run(work())


def test_a_queue_that_cannot_be_opened_again_ends_its_source(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with replicated(orders, tmp_path / "copy") as (_, source):
            Disk(monkeypatch, orders).failures = ["written", "full"]
            for _ in range(2):  # the second one is refused for the same reason
                with pytest.raises(HandoverError, match="this queue stays closed"):
                    await source.hand_over("b")
            with pytest.raises(HandoverError, match="quire promote"):
                await asyncio.wait_for(source.run_forever(), WAIT_S)

    asyncio.run(work())
    assert (part(orders), part(tmp_path / "copy")) == ((2, "sink"), (1, "sink"))
    assert not is_open(orders)
    assert promote(orders) == 3
    assert is_open(orders)


@contextmanager
def full_disk_of_groups(
    monkeypatch: pytest.MonkeyPatch, orders: Path, leave: int
) -> Generator[None]:
    """Have room for some side files of groups, and then for none."""
    left = leave

    def limited(real: Callable[..., bool]) -> Callable[..., bool]:
        def made(path: str | Path, *given: Any, **named: Any) -> bool:  # noqa: ANN401
            nonlocal left
            if orders in {Path(path), Path(path).parent}:
                if not left:
                    raise NO_ROOM
                left -= 1
            return real(path, *given, **named)

        return made

    with monkeypatch.context() as patched:
        patched.setattr(positions, "group_keep", limited(_native.group_keep))
        patched.setattr(positions, "group_take", limited(_native.group_take))
        yield


def test_groups_that_cannot_be_closed_nor_opened_again(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Appends go on at once, and the groups once there is room."""

    async def work() -> None:
        async with replicated(orders, tmp_path / "copy") as (queue, source):
            for name in ("g1", "g2"):
                assert is_joinable(queue, name)
            with full_disk_of_groups(monkeypatch, orders, leave=1):
                with pytest.raises(OSError, match="No space left"):
                    await source.hand_over("b")
                queue.appender().write_bytes(b"three")
                assert [is_joinable(queue, it) for it in ("g1", "g2")] == [False, True]
            await until(lambda: is_joinable(queue, "g1"))
            await hands_over(queue, source, orders)

    asyncio.run(work())
    text = "groups stay closed after a handover that failed"
    assert [text in it.getMessage() for it in caplog.records].count(True) == 1


def test_groups_whose_handover_is_undone_have_what_was_in_work_again_and_nothing_else(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(queue: quire.JournalQueue, given: object) -> None:
        del given
        if queue.path == str(orders):
            raise OSError("no room")

    async def work() -> list[tuple[bytes, bool]]:
        async with replicated(orders, tmp_path / "copy") as (queue, source):
            with queue.group("g1").consumer() as consumer:
                assert consumer.read() is not None  # in work
                with monkeypatch.context() as patched:
                    patched.setattr(standing, "write_of", Once(standing.write_of, refuse))
                    with pytest.raises(OSError, match="no room"):
                        await source.hand_over("b")
            with queue.group("g1").consumer() as consumer:
                return [
                    (it.data, it.redelivered) for it in (consumer.read(), consumer.read()) if it
                ]

    assert asyncio.run(work()) == [(b"one", True), (b"two", False)]


@pytest.mark.check
def test_groups_that_a_process_before_left_closed(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        async with replicated(orders, tmp_path / "copy") as (queue, source):
            assert is_joinable(queue, "g1")
            assert is_joinable(queue, "g2")
            with full_disk_of_groups(monkeypatch, orders, leave=1):
                with pytest.raises(OSError, match="No space left"):
                    await source.hand_over("b")
                await source.close()

    async def begin() -> None:
        with quire.open(orders) as queue:
            assert not is_joinable(queue, "g1")
            async with Source(queue):
                await until(lambda: is_joinable(queue, "g1"))

    asyncio.run(fail())
    asyncio.run(begin())


class Once:
    """A function that another takes the place of for its first call."""

    def __init__(self, real: Callable[..., Any], first: Callable[..., Any]) -> None:
        self._real, self._next = real, [first]

    def __call__(self, *given: Any) -> Any:  # noqa: ANN401
        return (self._next.pop() if self._next else self._real)(*given)


class Pause:
    """A function of a queue that waits in its thread, once, until it may go on."""

    def __init__(self, patch: pytest.MonkeyPatch, where: Any, name: str, path: Path) -> None:  # noqa: ANN401
        self._real, self._path = getattr(where, name), str(path)
        self.begun, self.goes_on = threading.Event(), threading.Event()
        patch.setattr(where, name, self._function())

    def _function(self) -> Callable[..., Any]:
        def paused(queue: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401
            if not self.begun.is_set() and str(queue.path) == self._path:
                self.begun.set()
                assert self.goes_on.wait(WAIT_S)
            return self._real(queue, *given, **named)

        return paused

    async def cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel what waits for it, which ends when it does."""
        await until(self.begun.is_set)
        for _ in range(2):
            task.cancel()
            done, _ = await asyncio.wait({task}, timeout=0.01)
            assert not done
        self.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (succession, "open_again"),
        pytest.param(succession, "take_groups", marks=pytest.mark.check),
        pytest.param(standing, "write_of", marks=pytest.mark.check),
    ],
)
def test_a_cancelled_handover_opens_the_queue_again(
    where: ModuleType,
    name: str,
    orders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        async with replicated(orders, tmp_path / "copy") as (queue, source):
            assert is_joinable(queue, "g1")
            pause = Pause(monkeypatch, where, name, orders)
            await pause.cancel(asyncio.create_task(source.hand_over("b")))
            assert is_joinable(queue, "g1")
            await hands_over(queue, source, orders)

    asyncio.run(work())


@pytest.mark.check
def test_a_handover_that_is_cancelled_while_the_sink_takes_over(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source ends, and says what to do; the sink takes over."""
    copy = tmp_path / "copy"

    async def work() -> None:
        async with replicated(orders, copy) as (_, source):
            pause = Pause(monkeypatch, replica.Replica, "promote", copy)
            task = asyncio.create_task(source.hand_over("b"))
            await until(pause.begun.is_set)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(HandoverError, match="it is not known whether the sink was"):
                await asyncio.wait_for(source.run_forever(), WAIT_S)
            pause.goes_on.set()
            await until(lambda: part(copy) == (2, "source"))

    asyncio.run(work())
    assert (part(orders), is_open(orders), is_open(copy)) == ((2, "sink"), False, True)


@pytest.mark.check
def test_a_sink_that_is_closed_while_it_takes_over(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is promoted before it is closed."""
    copy, ours = tmp_path / "copy", Authority.make(tmp_path, "ours")

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue, tls=ours.signed("source")) as source:
                tls = ours.signed("sink")  # has it all done in the event loop
                sink = Sink(copy, port=source.address[1], name="b", tls=tls)
                async with sink:
                    await source.acknowledged(queue.last_index or 0)
                    pause = Pause(monkeypatch, replica.Replica, "promote", copy)
                    handing = asyncio.create_task(source.hand_over("b"))
                    await until(pause.begun.is_set)
                    closing = asyncio.create_task(sink.close())
                    await asyncio.wait({closing}, timeout=0.01)
                    pause.goes_on.set()
                    await closing
                with pytest.raises(HandoverError, match="did not say that it was promoted"):
                    await handing

    asyncio.run(work())
    assert (part(orders), part(copy)) == ((2, "sink"), (2, "source"))
    assert (is_open(orders), is_open(copy)) == (False, True)


def test_a_standing_counts_once_it_is_written(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise NO_ROOM

    async def work() -> None:
        async with replicated(orders, tmp_path / "copy"):
            pass

    asyncio.run(work())
    facts = {"queue": None, "epoch": 1, "first": None, "last": None}
    with quire.open(orders) as queue:
        original = Original(queue)
        facts = original.facts()
        before = original.standing
        monkeypatch.setattr(standing, "write_of", fail)
        with pytest.raises(OSError, match="No space left"):
            original.fence(5)
        assert original.standing == before
    copy = replica.Replica(tmp_path / "copy", {})
    copy.join(facts)
    was = copy.standing
    with pytest.raises(OSError, match="No space left"):
        copy.promote(2)
    assert copy.standing == was
    copy.close()


def test_a_node_that_has_resigned_stays_closed(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another may be the source by then."""

    def office() -> Any:  # noqa: ANN401 - what stands for etcd
        view = SimpleNamespace(in_sync=frozenset({"b"}))
        return Office(SimpleNamespace(view=view, resign=lambda _: None))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    async def work() -> None:
        with quire.open(orders) as queue:
            source = NodeSource(
                office(),
                queue,
                host="127.0.0.1",
                port=0,
                tls=None,
                insecure=False,
                compress=False,
            )
            async with source, Sink(tmp_path / "copy", port=source.address[1], name="b"):
                await source.acknowledged(queue.last_index or 0)
                Disk(monkeypatch, orders).failures = ["full"]
                with pytest.raises(HandoverError, match="stays closed"):
                    await source.hand_over("b")
                with pytest.raises(HandoverError):
                    await asyncio.wait_for(source.run_forever(), WAIT_S)

    asyncio.run(work())
    assert not is_open(orders)
