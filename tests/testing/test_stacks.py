"""Stacks of a thread whose loop is late."""

from __future__ import annotations

import sys
import threading

import pytest

from quire.testing import Stack, StackSampler, beat

INTERVAL_US = 500


class Looping:
    """A thread that beats once and then waits, in a function of its own."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        beat()
        self._late()

    def _late(self) -> None:
        self.go_on.wait()

    def end(self) -> None:
        self.go_on.set()
        self.thread.join()


def names(stack: Stack) -> list[str]:
    return [name for _, _, name in stack.frames]


def late(sampler: StackSampler) -> list[Stack]:
    """Return the stacks of the wait: a slow thread is sampled before it, too."""
    return [it for it in sampler.stacks if "_late" in names(it)]


def test_stacks_of_a_late_loop_are_grouped_and_counted() -> None:
    loop = Looping()
    with StackSampler(loop.thread, INTERVAL_US) as sampler:
        while sum(it.samples for it in late(sampler)) < 20:
            pass
    loop.end()
    first = late(sampler)[0]
    assert "_run" in names(first)
    assert f"{__file__}:" in str(first)
    counts = [it.samples for it in sampler.stacks]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) <= sampler.samples
    assert len({it.frames for it in sampler.stacks}) == len(counts)


def test_a_thread_that_never_beats_is_sampled_all_along() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, daemon=True)
    thread.start()
    with StackSampler(thread, INTERVAL_US) as sampler:
        while sampler.samples < 10:
            pass
    stop.set()
    thread.join()
    assert sum(it.samples for it in sampler.stacks) == sampler.samples


def test_a_loop_in_time_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("quire.testing.stacks.time.perf_counter_ns", lambda: now[0])
    beat()
    with StackSampler(interval_us=INTERVAL_US) as sampler:
        while sampler.samples < 5:
            pass
        assert sampler.stacks == []
        now[0] = 1000 * INTERVAL_US
        while not sampler.stacks:
            pass


def test_an_interval_of_less_than_50_us_is_refused() -> None:
    StackSampler(interval_us=50)
    with pytest.raises(ValueError, match="interval too short: interval_us=49 least=50"):
        StackSampler(interval_us=49)


def test_the_switch_interval_is_as_it_was_afterwards() -> None:
    before = sys.getswitchinterval()
    with StackSampler(interval_us=200), StackSampler(interval_us=100):
        assert sys.getswitchinterval() == pytest.approx(100e-6, rel=0.1)
    assert sys.getswitchinterval() == before


def test_a_sampler_runs_once_at_a_time_and_stops_with_its_thread() -> None:
    sampler = StackSampler()
    with sampler, pytest.raises(RuntimeError, match="already running"):
        sampler.start()
    sampler.stop()
    thread = threading.Thread(target=int)
    with StackSampler(thread, INTERVAL_US) as sampler:
        thread.start()
        thread.join()
