"""What the measurements of the part `sealed` are held against."""

from __future__ import annotations

from bench.harness import Result
from bench.summary import Spread, kept, taking

PLAIN, ENCRYPTED, CIPHER = "sealed.append@plain", "sealed.append@encrypted", "seal_crate.seal"
CYCLES = "sealed.cycles@compressed"
MOST_OF_CIPHER = 1.25
"""The most that encryption may add to an append, as a multiple of the cipher's own time."""
LEAST_FROM_CYCLES = 1e6
"""Messages a second that are read from compressed cycles, at least."""


def share_of_cipher(scenario: Result) -> Spread:
    """Return what encryption adds in each round, as a multiple of the cipher's own time."""
    nanos, runs = taking("nanos"), [one["runs"] for one in kept(scenario)]
    return Spread.of(
        [(nanos(run[ENCRYPTED]) - nanos(run[PLAIN])) / nanos(run[CIPHER]) for run in runs]
    )
