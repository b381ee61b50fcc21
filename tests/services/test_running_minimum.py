"""Latencies of two clocks: as Java's class has them, and close to the truth."""

from __future__ import annotations

import json
import random
from typing import TypedDict

import pytest

import quire
from paths import GOLDEN

HOUR_NS = 3_600_000_000_000


class Case(TypedDict):
    name: str
    actual_minimum: int
    drift: int
    samples: list[list[int]]


CASES: list[Case] = json.loads((GOLDEN / "running_minimum.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_samples_come_out_as_java_has_them(case: Case) -> None:
    minimum = quire.metrics.RunningMinimum(
        case["actual_minimum"], max_drift_ppm=1_000_000 / case["drift"]
    )
    got = [minimum.sample(start, end) for start, end, _ in case["samples"]]
    assert got == [expected for _, _, expected in case["samples"]]


def test_the_default_drift_is_that_of_java() -> None:
    cases = [case for case in CASES if case["drift"] == 100_000]
    assert len(cases) >= 3
    for case in cases:
        minimum = quire.metrics.RunningMinimum(case["actual_minimum"])
        got = [minimum.sample(start, end) for start, end, _ in case["samples"]]
        assert got == [expected for _, _, expected in case["samples"]]


def test_a_difference_that_overflows_is_divided_as_java_does() -> None:
    minimum = quire.metrics.RunningMinimum()
    far = 6 * 10**18
    assert minimum.sample(-far, -far + 5) == 0
    assert minimum.sample(far, far + 7) == 64_467_440_737_097  # Java's answer, rounded toward zero


def percentile(values: list[int], part: float) -> int:
    return sorted(values)[int(len(values) * part)]


def synthetic(
    drift_ppm: float, offset_ns: int, seed: int, count: int = 30_000
) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs 100 us apart by clocks that drift, and the true latencies: 5 us and more."""
    chance = random.Random(seed)  # noqa: S311 - repeatable
    pairs: list[tuple[int, int]] = []
    truth: list[int] = []
    now = 0
    for _ in range(count):
        now += chance.randrange(50_000, 150_000)
        latency = 5_000 + int(chance.expovariate(1 / 2_000))
        latency += 40_000 if chance.random() < 0.02 else 0
        received = now + latency
        pairs.append((now, received + offset_ns + int(received * drift_ppm / 1_000_000)))
        truth.append(latency)
    return pairs, truth


@pytest.mark.parametrize("drift_ppm", [50.0, -50.0, 0.0])
@pytest.mark.parametrize("offset_ns", [HOUR_NS, -HOUR_NS])
def test_an_hour_of_offset_and_50_ppm_of_drift_leave_p99_within_a_microsecond(
    drift_ppm: float, offset_ns: int
) -> None:
    pairs, truth = synthetic(drift_ppm, offset_ns, seed=7)
    minimum = quire.metrics.RunningMinimum(5_000, max_drift_ppm=60)

    got = [minimum.sample(*pair) for pair in pairs]

    assert abs(percentile(got, 0.99) - percentile(truth, 0.99)) < 1_000
    settled = [abs(a - b) for a, b in zip(got[1000:], truth[1000:], strict=True)]
    assert percentile(settled, 0.99) < 1_000


def test_a_clock_that_runs_away_faster_than_said_is_not_followed() -> None:
    pairs, truth = synthetic(50, HOUR_NS, seed=7)
    minimum = quire.metrics.RunningMinimum(5_000)  # 10 ppm, as Java's

    got = [minimum.sample(*pair) for pair in pairs]

    assert percentile(got, 0.99) - percentile(truth, 0.99) > 1_000


def test_the_minimum_can_be_seen() -> None:
    minimum = quire.metrics.RunningMinimum()
    assert minimum.minimum == 2**63 - 1
    minimum.sample(1_000, 1_700)
    minimum.sample(2_000, 2_300)
    assert minimum.minimum == 300


@pytest.mark.parametrize("drift", [0, -1, 2_000_000, float("nan")])
def test_a_drift_that_cannot_be_is_refused(drift: float) -> None:
    with pytest.raises(ValueError, match="max_drift_ppm="):
        quire.metrics.RunningMinimum(max_drift_ppm=drift)
