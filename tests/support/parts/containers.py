"""Processes with pids of their own, as in a container: the first one is pid 1."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import pytest

NAMESPACES = ("--user", "--map-root-user", "--mount", "--pid", "--mount-proc")
CONTAINER = ["unshare", *NAMESPACES, "--fork", "--kill-child=KILL"]


@cache
def why_no_namespaces() -> str | None:
    if shutil.which("unshare") is None:
        return "no unshare on the PATH"
    done = subprocess.run([*CONTAINER, "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no pid namespaces: {done.stderr.strip()}"


def need_namespaces() -> None:
    """Skip the test, with the reason, where the system forbids namespaces."""
    if why := why_no_namespaces():
        pytest.skip(why)
