"""What the tests of faults share: LIFE is the program that a module runs, FORMS its forms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fault_lives import Lives


@pytest.fixture(scope="module")
def lives(request: pytest.FixtureRequest) -> Iterator[Lives]:
    lives = Lives(request.module.LIFE)
    yield lives
    lives.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if hasattr(metafunc.module, "LIFE") and "form" in metafunc.fixturenames:
        metafunc.parametrize("form", metafunc.module.FORMS, scope="module")
