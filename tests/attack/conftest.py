"""What the tests of faults share: LIFE is the program that a module runs, FORMS its forms."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import cast

import pytest

from fault_lives import Lives


@pytest.fixture(scope="module")
def lives(request: pytest.FixtureRequest) -> Iterator[Lives]:
    module = cast("ModuleType", request.module)
    lives = Lives(str(vars(module)["LIFE"]))
    yield lives
    lives.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = vars(cast("ModuleType", metafunc.module))
    if "LIFE" in names and "form" in metafunc.fixturenames:
        metafunc.parametrize("form", cast("tuple[str, ...]", names["FORMS"]), scope="module")
