"""Pausers: how they escalate, what wakes them, and what they count."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

import quire
from quire import pausers
from quire.pausers import Pauser

ALL: dict[str, Callable[[], Pauser]] = {
    "busy": pausers.busy,
    "yielding": pausers.yielding,
    "balanced": pausers.balanced,
    "sleepy": pausers.sleepy,
    "millis": lambda: pausers.millis(1, 2),
    "timeout": lambda: pausers.timeout(60),
    "async_": pausers.async_,
}
every_pauser = pytest.mark.parametrize("kind", ALL)


def pauses(pauser: Pauser, count: int) -> Pauser:
    for _ in range(count):
        pauser.pause()
    return pauser


class Watched(Pauser):
    """A pauser that sleeps until it is woken, and shows that it is used."""

    def __init__(self) -> None:
        super().__init__(min_s=50, max_s=50)
        self.is_used = threading.Event()

    def pause(self, timeout_s: float | None = None) -> None:
        self.is_used.set()
        super().pause(timeout_s)

    async def apause(self, timeout_s: float | None = None) -> None:
        self.is_used.set()
        await super().apause(timeout_s)


def pauses_until_error(pauser: Pauser, timeout_s: float) -> None:
    while True:
        pauser.pause(timeout_s)


def test_every_kind_is_public() -> None:
    assert set(ALL) | {"Pauser"} == set(pausers.__all__)


def test_busy_never_pauses_and_yielding_never_sleeps() -> None:
    assert pauses(pausers.busy(), 10_000).count_paused == 0
    assert pauses(pausers.yielding(), 1_000).count_paused == 0

    yielded = pauses(pausers.yielding(busy_count=0), 1_000)
    yielded.reset()
    assert yielded.count_paused == 1
    assert yielded.time_paused_s > 0


def test_it_spins_then_yields_then_sleeps_longer_and_longer() -> None:
    pauser = Pauser(busy_count=3, yield_count=2, min_s=0.002, max_s=0.004)

    assert pauses(pauser, 3).count_paused == 0  # spun
    assert pauses(pauser, 2).count_paused == 0  # is still yielding
    pauses(pauser, 1)
    assert pauser.count_paused == 2  # yielded, and slept
    assert pauser.time_paused_s >= 0.002
    before_s = pauses(pauser, 100).time_paused_s
    assert pauses(pauser, 1).time_paused_s - before_s >= 0.004


def test_a_reset_begins_again() -> None:
    pauser = pauses(Pauser(busy_count=5, min_s=0.000_1), 9)
    assert pauser.count_paused == 4

    pauser.reset()

    assert pauses(pauser, 5).count_paused == 4
    assert pauses(pauser, 1).count_paused == 5


def test_unpause_from_another_thread_ends_a_sleep() -> None:
    for _ in range(20):  # now before it sleeps, now after
        pauser = Watched()
        thread = threading.Thread(target=pauser.pause)
        thread.start()
        pauser.is_used.wait()
        pauser.unpause()
        thread.join(300)

        assert not thread.is_alive()
        assert pauser.count_paused == 1


def test_an_unpause_before_the_sleep_is_not_lost_and_counts_once() -> None:
    pauser = pausers.millis(50_000)
    for _ in range(3):
        pauser.unpause()

    pauser.pause()
    assert pauser.time_paused_s < 20
    pauser.reset()
    pauser.pause(0.1)
    with pytest.raises(quire.errors.WaitTimeoutError):
        pauser.pause(0.1)


@every_pauser
def test_a_timeout_is_counted_from_the_first_pause_after_a_reset(kind: str) -> None:
    pauser = ALL[kind]()
    start_s = time.monotonic()
    with pytest.raises(quire.errors.WaitTimeoutError, match=r"timeout_s=0\.03") as caught:
        pauses_until_error(pauser, 0.03)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - start_s >= 0.03
    with pytest.raises(TimeoutError):
        pauser.pause(0.03)

    pauser.reset()
    pauser.pause(0.03)


def test_a_timeout_cuts_the_sleep_short() -> None:
    pauser = pausers.millis(50_000)

    with pytest.raises(TimeoutError):
        pauses_until_error(pauser, 0.02)

    assert 0.02 <= pauser.time_paused_s < 20


def test_a_timeout_pauser_raises_by_itself() -> None:
    pauser = pausers.timeout(0.02, busy_count=10)
    with pytest.raises(quire.errors.WaitTimeoutError, match=r"timeout_s=0\.02"):
        pauses(pauser, 10_000_000)


@every_pauser
def test_the_event_loop_runs_on(kind: str) -> None:
    async def both() -> int:
        pauser, turns = ALL[kind](), 0

        async def turn() -> None:
            nonlocal turns
            for _ in range(50):
                await asyncio.sleep(0)
                turns += 1

        async def wait() -> None:
            while turns < 50:
                await pauser.apause(30)

        await asyncio.gather(wait(), turn())
        return turns

    assert asyncio.run(both()) == 50


def test_unpause_from_another_thread_ends_an_async_sleep() -> None:
    async def sleep_until_error(pauser: Pauser) -> None:
        while True:
            await pauser.apause(0.05)

    async def sleep() -> None:
        pauser = Watched()

        def wake() -> None:
            pauser.is_used.wait()
            pauser.unpause()

        thread = threading.Thread(target=wake)
        thread.start()
        await pauser.apause()
        assert pauser.count_paused == 1
        thread.join()

        pauser.unpause()
        await pauser.apause()  # what came before it ends it too

        short = pausers.millis(20)
        await short.apause()
        assert short.time_paused_s >= 0.019
        with pytest.raises(quire.errors.WaitTimeoutError):
            await sleep_until_error(short)

    asyncio.run(asyncio.wait_for(sleep(), 300))


def test_an_unpause_after_the_loop_is_gone_does_no_harm() -> None:
    pauser = Watched()

    async def cancelled() -> None:
        task = asyncio.create_task(pauser.apause())
        await asyncio.sleep(0)  # the task runs until it waits
        assert pauser.is_used.is_set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())

    pauser.unpause()
    pauser.pause()


@pytest.mark.parametrize(
    "wrong", [{"min_s": 0}, {"min_s": 2, "max_s": 1}, {"busy_count": -1}, {"max_s": float("inf")}]
)
def test_pauses_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        Pauser(**wrong)


def test_repr_shows_the_counts() -> None:
    assert "count_paused=2" in repr(pauses(pausers.millis(1), 2))


def test_a_tailer_waits_with_the_pauser_it_is_given(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    pauser = Watched()

    def append() -> None:
        pauser.is_used.wait()
        appender.write_bytes(b"there")
        pauser.unpause()

    writer = threading.Thread(target=append)
    writer.start()
    tailer.wait(30, pauser=pauser)
    writer.join()
    assert [next(tailer.follow(pauser=pauser)).data] == [b"there"]
    assert 1 <= pauser.count_paused <= 3

    assert list(tailer.follow(pauser=pausers.timeout(0.01))) == []


def test_an_async_follower_waits_with_the_pauser_it_is_given(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    pauser = Watched()

    def append() -> None:
        pauser.is_used.wait()
        appender.write_bytes(b"there")
        pauser.unpause()

    async def read() -> bytes:
        writer = threading.Thread(target=append)
        writer.start()
        async for excerpt in tailer.afollow(pauser=pauser):
            writer.join()
            return excerpt.data
        raise AssertionError

    assert asyncio.run(asyncio.wait_for(read(), 300)) == b"there"
