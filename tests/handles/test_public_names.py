"""What handles and the package offer: nothing that is their own business, and all that is lazy."""

from __future__ import annotations

import subprocess
import sys

import pytest

import quire

INTERNALS: dict[type, set[str]] = {
    quire.JournalQueue: {"reopen", "write_position"},
    quire.JournalAppender: {"write_column", "has_field_names", "waits_for_disk"},
    quire.JournalTailer: {"read_columns", "read_decoded", "set_topics", "topic_number"},
}


@pytest.mark.parametrize("handle", INTERNALS)
def test_internals_of_handles_are_private(handle: type) -> None:
    assert INTERNALS[handle].isdisjoint(dir(handle))
    assert {f"_{name}" for name in INTERNALS[handle]} <= set(dir(handle))


def test_the_package_lists_what_it_imports_when_asked() -> None:
    program = "import quire; print(*dir(quire))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert set(quire.__all__) <= set(done.stdout.split())
