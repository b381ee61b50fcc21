"""Parameters of tests: `make test` runs some of them, `make check` the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some(values: Iterable[object], keep: Collection[int]) -> list[Any]:
    """Return values for `pytest.mark.parametrize`; all but those at the places *keep* are slow."""
    return [
        value if place in keep else pytest.param(value, marks=pytest.mark.slow)
        for place, value in enumerate(values)
    ]


def some_sets(sets: Iterable[tuple[object, ...]], keep: Collection[int]) -> list[Any]:
    """The same for values of several parameters."""
    return [
        them if place in keep else pytest.param(*them, marks=pytest.mark.slow)
        for place, them in enumerate(sets)
    ]
