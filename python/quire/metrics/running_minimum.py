"""Latencies between machines whose clocks are not synchronised."""

from __future__ import annotations

import math

_PPM = 1_000_000
_LONG_MIN = -(2**63)
_LONG_MAX = 2**63 - 1


class RunningMinimum:
    """
    Turns times of two clocks into latencies: the difference of each sample from the best one.

    The least observed difference between the clocks stands for the best latency. It rises by
    *max_drift_ppm*, so that it follows a drifting clock, and falls with every sample below it; so
    samples should be frequent. The default is the drift of Java's class.

    Args:
        actual_minimum: The best latency, if it is known or estimated, in nanoseconds.
        max_drift_ppm: More than the actual drift of the clocks, in microseconds per second. If it
            is much more, latencies are too small by the rise between two samples near the best one.

    Examples:
        >>> latency = quire.metrics.RunningMinimum()
        >>> latency.sample(start_time=1_000, end_time=6_000)  # the best one so far
        0
        >>> latency.sample(start_time=2_000, end_time=7_250)
        250
        >>> latency.minimum
        5000

    """

    def __init__(self, actual_minimum: int = 0, *, max_drift_ppm: float = 10.0) -> None:
        """Start without a sample."""
        if not 0 < max_drift_ppm <= _PPM:
            raise ValueError(f"a drift is above 0 and below a million: {max_drift_ppm=}")
        self._actual_minimum = actual_minimum
        self._drift = math.floor(_PPM / max_drift_ppm)  # the minimum rises by 1 per this many
        self._last_start = _LONG_MIN
        self._minimum = _LONG_MAX

    def sample(self, start_time: int, end_time: int) -> int:
        """
        Return the latency between two times, in nanoseconds.

        Args:
            start_time: When it was sent, by the clock of the sender.
            end_time: When it was received, by the clock of the receiver.

        """
        if _wrapped(self._last_start + self._drift) <= start_time:
            if self._last_start != _LONG_MIN:
                passed = _wrapped(start_time - self._last_start)
                self._minimum = _wrapped(self._minimum + _truncated(passed, self._drift))
            self._last_start = start_time
        delta = _wrapped(end_time - start_time)
        self._minimum = min(self._minimum, delta)
        return _wrapped(delta - self._minimum + self._actual_minimum)

    @property
    def minimum(self) -> int:
        """The present minimum of the clocks' difference; 2**63-1 before the first sample."""
        return self._minimum


def _wrapped(value: int) -> int:
    """Return the value as a 64-bit integer of Java."""
    return (value + 2**63) % 2**64 - 2**63


def _truncated(dividend: int, divisor: int) -> int:
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)
