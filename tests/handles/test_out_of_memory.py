"""Too little memory is a `MemoryError`, and the same call succeeds once there is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import starved
from parameters import some

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


@pytest.mark.parametrize("group", some((group.__name__ for group in starved.GROUPS), keep=[3]))
def test_too_little_memory_is_a_memory_error(group: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", starved.__file__, group, str(tmp_path / "q")]
    ran = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}"
