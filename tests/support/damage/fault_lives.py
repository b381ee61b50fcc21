"""A writer dies at any named step, or a system call of it fails, and another one goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from errno import EIO
from pathlib import Path
from typing import Any

from fault_peer import BUILD, POINTS, SIGKILL, sample
from paths import SUPPORT
from tally import scaled

SAMPLE = 3


@dataclass(frozen=True)
class Life:
    """What a life said."""

    exit: int
    written: dict[int, str]
    read: set[str]
    hits: dict[str, int]
    error: str | None
    said: list[list[Any]]

    @property
    def is_cut_short(self) -> bool:
        return self.exit != 0 or self.error is not None


class Lives:
    """A process of the build with fault points, which forks a child for each life."""

    def __init__(self, script: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SUPPORT / script)],
            env=os.environ | {"PYTHONPATH": str(BUILD)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def live(self, path: Path, form: str, name: str, fault: str = "") -> Life:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([str(path), form, name, fault]) + "\n")
        stdin.flush()
        code: int
        said: list[list[Any]]
        code, said = json.loads(stdout.readline())
        none: dict[str, int] = {}
        hits: dict[str, int] = next((it[1] for it in said if it[0] == "hits"), none)
        written = {what: rest[0] for what, *rest in said if isinstance(what, int)}
        read = {rest[0] for what, *rest in said if what == "read"}
        error = next((rest[0] for what, *rest in said if what == "failed"), None)
        assert code in {0, SIGKILL}, fault
        assert error is None or fault.endswith(f":{EIO}"), error
        met = {point: count for point, count in hits.items() if count}
        return Life(code, written, read, met, error, said)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def points(prefix: str) -> set[str]:
    """Return the names in the kernel's list that begin with *prefix*."""
    listed = POINTS.read_text("utf-8").split("POINTS: &[&str] = &[")[1].split("];")[0]
    return {name for name in re.findall(r'"([\w.-]+)"', listed) if name.startswith(prefix)}


def calls() -> set[str]:
    """Return the names of system calls: they can fail."""
    sources = [file.read_text("utf-8") for file in POINTS.parents[1].rglob("*.rs")]
    return {name for it in sources for name in re.findall(r'fault::call!\(\s*"([\w.-]+)"', it)}


def check_written(found: dict[int, str], lives: list[Life]) -> None:
    """Nothing that was written is lost; at most one message of each life was not said yet."""
    written = {index: text for life in lives for index, text in life.written.items()}
    assert {index: found.get(index) for index in written} == written
    assert len(found) <= len(written) + sum(life.is_cut_short for life in lives)
    for text in found.values():
        assert len(set(re.findall(r"\w+ \d+ \d+ ", text))) == 1, text


Check = Callable[[Path, list[Life]], None]


def crash_at_each(
    lives: Lives, form: str, hits: dict[str, int], directory: Path, check: Check
) -> int:
    """
    Kill a writer at each point, check what it leaves, let another one go on, and check that.

    Returns how many crashes there were.
    """
    crashes = 0
    for name, count in hits.items():
        for nth in sample(name, count, scaled(SAMPLE, count)):
            path = directory / f"{name}-{nth}"
            died = lives.live(path, form, "first", f"{name}:{nth}:kill")
            if died.exit != SIGKILL:  # some calls are made again when time passes
                assert nth > 1, (name, nth)
                assert died.hits.get(name, 0) < nth, (name, nth)
                continue
            _go_on(lives, form, path, died, check)
            crashes += 1
    return crashes


def fail_each(lives: Lives, form: str, hits: dict[str, int], directory: Path, check: Check) -> int:
    """As above, where a system call fails; returns how many did."""
    failures = 0
    for name in sorted(calls() & hits.keys()):
        for nth in sample(name, hits[name], scaled(SAMPLE, hits[name])):
            path = directory / f"{name}-{nth}"
            failed = lives.live(path, form, "first", f"{name}:{nth}:{EIO}")
            assert failed.error is None or os.strerror(EIO) in failed.error, (name, nth, failed)
            _go_on(lives, form, path, failed, check)
            failures += 1
    return failures


def _go_on(lives: Lives, form: str, path: Path, first: Life, check: Check) -> None:
    try:
        check(path, [first])
        check(path, [first, lives.live(path, form, "second")])
    except Exception as error:
        error.add_note(path.name)
        raise
