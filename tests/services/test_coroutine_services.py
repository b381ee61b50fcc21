"""Services whose handlers are coroutine functions: each message is handled once, here too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from event_loops import ticking, until
from service_cases import Adder, BrokenError, Place, Results, opened


class SlowAdder(Adder):
    """As its base, and waits before it starts and between any two outputs."""

    def __init__(self, out: Results) -> None:
        super().__init__(out)
        self.gate = asyncio.Event()
        self.gate.set()
        self.waits_at: int | None = None

    async def number(self, value: int) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.sum += value
        for count in range(value % 4):
            if self.fails_at == value and count:
                raise BrokenError
            if count == 2:
                self.out.to("third").total(self.sum)
            else:
                self.out.total(self.sum * 10 + count)
            await asyncio.sleep(0)
            if self.waits_at == value:
                await self.gate.wait()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened(tmp_path) as found:
        yield found


def plain(tmp_path: Path, *numbers: int) -> list[str]:
    """What the same service writes with a handler that never waits."""
    with opened(tmp_path / "plain") as place:
        place.numbers(*numbers)
        with place.service() as service:
            while service.run_once():
                pass
        return place.results()


async def drain(service: quire.Service) -> None:
    while await service.arun_once():
        pass


def test_it_writes_what_a_handler_writes_that_never_waits(place: Place, tmp_path: Path) -> None:
    async def main() -> int:
        async with place.service(SlowAdder) as service, ticking() as ticks:
            task = asyncio.create_task(service.arun())
            place.numbers(*range(50))
            await until(lambda: service.handler.sum == sum(range(50)))
            service.stop()
            await task
            return ticks.count

    assert asyncio.run(main()) > 50
    assert place.results() == plain(tmp_path, *range(50))


@pytest.mark.parametrize("how", ["raises", "is cancelled", "is closed"])
def test_a_message_that_was_half_done_is_finished_by_the_next_service(
    how: str, place: Place, tmp_path: Path
) -> None:
    place.numbers(1, 3, 2)

    async def broken() -> None:
        service = place.service(SlowAdder)
        if how == "raises":
            service.handler.fails_at = 3
            with pytest.raises(BrokenError):
                await drain(service)
            return
        service.handler.gate.clear()
        service.handler.waits_at = 3
        task = asyncio.create_task(drain(service))
        await until(lambda: len(place.results()) == 2)
        if how == "is closed":
            service.close()
            service.handler.gate.set()
            with pytest.raises(quire.QuireError):
                await task
            return
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(quire.errors.ClosedError):
            service.run_once()

    async def whole() -> None:
        async with place.service(SlowAdder) as service:
            await drain(service)

    asyncio.run(broken())
    assert len(place.results()) == 2
    asyncio.run(whole())
    assert place.results() == plain(tmp_path, 1, 3, 2)


def test_two_inputs_are_handled_one_message_at_a_time(place: Place) -> None:
    place.numbers(1, 2)
    place.words("a", "b")

    async def main() -> None:
        inputs = [place.first, place.second]
        async with place.service(SlowAdder, inputs=inputs) as service:
            await drain(service)

    asyncio.run(main())
    assert place.results() == ["total 10", "both a 1", "total 30", "total 31", "both b 3"]


def test_a_second_task_is_refused_and_the_first_goes_on(place: Place) -> None:
    place.numbers(1)

    async def main() -> None:
        async with place.service(SlowAdder) as service, ticking() as ticks:
            service.handler.gate.clear()
            service.handler.waits_at = 1
            task = asyncio.create_task(service.arun_once())
            await ticks.more()
            with pytest.raises(RuntimeError, match=r"is still being handled.*Service"):
                await service.arun_once()
            with pytest.raises(RuntimeError, match=r"is still being handled.*Service"):
                service.run_once()
            service.handler.gate.set()
            assert await task

    asyncio.run(main())
    assert place.results() == ["total 10"]


def test_an_output_of_a_task_that_the_handler_starts_is_refused(place: Place) -> None:
    class Starts:
        def __init__(self, out: Results) -> None:
            self.out = out

        async def number(self, value: int) -> None:
            async def write() -> None:
                self.out.total(value)

            await asyncio.create_task(write())

    place.numbers(1)
    service = place.service(Starts)
    with pytest.raises(quire.QuireError, match="not in a thread or task that the handler starts"):
        asyncio.run(service.arun_once())
    assert place.results() == []


def test_a_service_without_an_event_loop_refuses_a_coroutine(place: Place) -> None:
    place.numbers(1)
    service = place.service(SlowAdder)
    with pytest.raises(TypeError, match=r"handler=.*number"):
        service.run_once()
    assert place.results() == []
