"""What the golden files say that Java answers is what it answers."""

from __future__ import annotations

import pytest

import java_golden
from paths import GOLDEN

pytestmark = pytest.mark.java


@pytest.mark.parametrize("name", java_golden.FILES)
def test_java_still_answers_as_the_golden_file_says(name: str) -> None:
    assert java_golden.FILES[name]() == (GOLDEN / name).read_text(encoding="ascii")
