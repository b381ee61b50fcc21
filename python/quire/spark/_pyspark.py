"""Which PySpark there is, and what the older releases lack."""

from __future__ import annotations

from typing import Final

import pyspark

from quire.errors import UnsupportedError

OLDEST: Final = (4, 1)
NEWEST: Final = (4, 3)
READ_LIMITS: Final = (4, 2)
"""From here on, Spark says to a stream's source where a batch begins, and how long it may be."""


def _release(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def _check(version: str) -> tuple[int, int]:
    """
    Return the release.

    Raises:
        ImportError: PySpark is older than the data source needs.

    """
    found = _release(version)
    if found < OLDEST:
        oldest, newest = (".".join(map(str, release)) for release in (OLDEST, NEWEST))
        raise ImportError(
            f"quire.spark needs PySpark {oldest} to {newest}: found={version};"
            " pip install 'quire[spark]'"
        )
    return found


RELEASE: Final = _check(pyspark.__version__)


def has(since: tuple[int, int]) -> bool:
    """Whether this PySpark has what came with a release."""
    return since <= RELEASE


def refusal(what: str, since: tuple[int, int]) -> UnsupportedError:
    """Return the error of what came with a later release."""
    needed = ".".join(map(str, since))
    return UnsupportedError(
        f"{what} needs PySpark {needed} or newer: found={pyspark.__version__};"
        f" pip install 'pyspark>={needed}'"
    )
