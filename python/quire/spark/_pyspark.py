"""The release of PySpark, and what older releases lack."""

from __future__ import annotations

from typing import Final

import pyspark

from quire.errors import UnsupportedError

OLDEST: Final = (4, 1)
NEWEST: Final = (4, 3)
READ_LIMITS: Final = (4, 2)
"""The first release that passes the start and the size limit of a batch to a stream's source."""


def _release(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def _check(version: str) -> tuple[int, int]:
    """
    Parse and check the release.

    Raises:
        ImportError: PySpark is too old for the data source.

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
    """Whether this PySpark is as new as a release."""
    return since <= RELEASE


def refusal(what: str, since: tuple[int, int]) -> UnsupportedError:
    """Return the error for a feature that needs a newer release."""
    needed = ".".join(map(str, since))
    return UnsupportedError(
        f"{what} needs PySpark {needed} or newer: found={pyspark.__version__};"
        f" pip install 'pyspark>={needed}'"
    )
