"""The package itself: what importing it loads, and what it offers."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import quire


def test_importing_quire_loads_the_standard_library_alone() -> None:
    program = """if True:
        import sys
        before = set(sys.modules)
        import quire
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(*sorted(loaded - sys.stdlib_module_names))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.split() == [b"quire"]
    assert done.stderr == b""


def test_everything_that_is_offered_is_there() -> None:
    assert sorted(quire.__all__) == sorted(set(quire.__all__))
    assert [name for name in quire.__all__ if not hasattr(quire, name)] == []


def test_the_version_is_that_of_the_distribution() -> None:
    assert quire.__version__ == importlib.metadata.version("quire")
