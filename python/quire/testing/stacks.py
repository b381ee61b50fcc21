"""Stacks of a thread while its loop is late, sampled from another thread."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from types import FrameType, TracebackType
from typing import Final, NamedTuple, Self, TypeAlias

from quire._common.arguments import shown

LEAST_INTERVAL_US: Final = 50
_DEEPEST: Final = 64  # frames

Key: TypeAlias = tuple[tuple[str, int, str], ...]

_beats: dict[int, int] = {}
"""When each thread last reported the start of a turn of its loop, in nanoseconds."""

_switch = threading.Lock()
_intervals: list[float] = []
"""The interpreter's switch interval before the first sampler, and those of the samplers."""


def beat() -> None:
    """
    Report that the calling thread's loop begins a turn.

    It costs a fraction of a microsecond, and has no effect unless the thread is sampled.

    Examples:
        >>> for _ in range(3):
        ...     quire.testing.beat()
        ...     _ = tailer.read_bytes()

    """
    _beats[threading.get_ident()] = time.perf_counter_ns()


class Stack(NamedTuple):
    """
    A stack sampled while a loop was late.

    Attributes:
        samples: How often it was sampled.
        frames: File, line and function of each call, the innermost first.

    Examples:
        >>> stack = quire.testing.Stack(7, (("reader.py", 9, "send"), ("reader.py", 16, "main")))
        >>> print(stack)
        reader.py:9 in send
        reader.py:16 in main

    """

    samples: int
    frames: Key

    def __str__(self) -> str:
        """Return a line for each call."""
        return "\n".join(f"{file}:{line} in {name}" for file, line, name in self.frames)


class StackSampler:
    """
    Samples the stack of a thread whenever its loop is late.

    A loop is late when :func:`beat` was not called for longer than the interval. For a thread that
    never calls it, every sample counts. While a sampler runs, the interpreter switches threads at
    least once per interval, which slows down programs with several threads.

    Args:
        thread: The thread; None for the calling one.
        interval_us: Microseconds between samples, and the time after which a turn is late.

    Raises:
        ValueError: The interval is below 50 microseconds: the samples would mostly show the
            sampling.

    Examples:
        >>> import time
        >>> with quire.testing.StackSampler(interval_us=1_000) as sampler:
        ...     quire.testing.beat()
        ...     time.sleep(0.05)
        >>> file, line, function = sampler.stacks[0].frames[0]

    """

    def __init__(self, thread: threading.Thread | None = None, interval_us: int = 1_000) -> None:
        """Check the interval."""
        if interval_us < LEAST_INTERVAL_US:
            raise ValueError(
                f"interval too short: interval_us={shown(interval_us)} least={LEAST_INTERVAL_US}"
            )
        self._thread = threading.current_thread() if thread is None else thread
        self._interval_us = interval_us
        self._found: Counter[Key] = Counter()
        self._samples = 0
        self._is_done = False
        self._sampler: threading.Thread | None = None

    @property
    def samples(self) -> int:
        """
        The number of samples, late or not.

        Examples:
            >>> quire.testing.StackSampler().samples
            0

        """
        return self._samples

    @property
    def stacks(self) -> list[Stack]:
        """
        The stacks sampled while the loop was late, the most frequent first.

        Examples:
            >>> quire.testing.StackSampler().stacks
            []

        """
        return [Stack(count, key) for key, count in self._found.most_common()]

    def start(self) -> None:
        """
        Start to sample.

        Raises:
            RuntimeError: The sampler is running.

        Examples:
            >>> sampler = quire.testing.StackSampler()
            >>> sampler.start()
            >>> sampler.stop()

        """
        if self._sampler is not None:
            raise RuntimeError("the sampler is already running: stop it first")
        self._is_done = False
        _switch_every(self._interval_us / 1e6)
        self._sampler = threading.Thread(target=self._run, name="quire-stacks", daemon=True)
        self._sampler.start()

    def stop(self) -> None:
        """
        Return when no more samples are taken. Idempotent.

        Examples:
            >>> sampler = quire.testing.StackSampler()
            >>> sampler.stop()

        """
        if self._sampler is not None:
            self._is_done = True
            self._sampler.join()
            self._sampler = None
            _switch_no_more(self._interval_us / 1e6)

    def __enter__(self) -> Self:
        """Start to sample."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Stop."""
        self.stop()

    def _run(self) -> None:
        ident, interval_ns = self._thread.ident, self._interval_us * 1000
        while not self._is_done and self._thread.is_alive():
            time.sleep(self._interval_us / 1e6)
            if ident is None:  # not started yet
                ident = self._thread.ident
                continue
            self._samples += 1
            if time.perf_counter_ns() - _beats.get(ident, 0) < interval_ns:
                continue
            frames = sys._current_frames()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            frame = frames.get(ident)
            if frame is not None:
                self._found[_key(frame)] += 1


def _key(frame: FrameType | None) -> Key:
    found = list[tuple[str, int, str]]()
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        found.append((code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_name))
        frame = frame.f_back
    return tuple(found)


def _switch_every(seconds: float) -> None:
    """Let threads switch at least this often, while any sampler needs it."""
    with _switch:
        if not _intervals:
            _intervals.append(sys.getswitchinterval())
        _intervals.append(seconds)
        sys.setswitchinterval(min(_intervals))


def _switch_no_more(seconds: float) -> None:
    with _switch:
        _intervals.remove(seconds)
        sys.setswitchinterval(min(_intervals))
        if len(_intervals) == 1:
            _intervals.clear()
