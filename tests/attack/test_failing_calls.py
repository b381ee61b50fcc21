"""Every system call of the kernel fails, every time it is made, with what the system may answer."""

from __future__ import annotations

import errno
import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fault_peer import FaultBuild, calls, survives
from tally import TORTURE, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(scaled(900, 14_400))]

ERRORS = (
    errno.EIO,
    errno.EMFILE,
    errno.EACCES,
    errno.EROFS,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.EINTR,
)
# Waited out, as they say that another holds the lock or that nothing happened.
WAITED_OUT = {("record-lock.take", errno.EACCES)}
MOST = 500  # times that one life comes by a call


@pytest.fixture(scope="module")
def build() -> Iterator[FaultBuild]:
    with FaultBuild() as build:
        yield build


def faults(number: int) -> list[tuple[int, str]]:
    """Return which errors the Nth call gives, once or from then on: all, or one in turn."""
    every = [(error, lasting) for lasting in ("", "+") for error in ERRORS]
    return every if TORTURE else [every[number % len(every)]]


@pytest.mark.parametrize("name", calls())
def test_a_call_that_fails_is_an_error_and_nothing_more(
    build: FaultBuild, tmp_path: Path, tally: Callable[[str, int, str], None], name: str
) -> None:
    """The same handles go on, or fresh ones; what had returned stays; nothing is half there."""
    wrong: list[str] = []
    tried = raised = 0
    for nth in itertools.count(1):
        assert nth < MOST
        was_reached = False
        for error, lasting in faults(nth + len(name)):
            if lasting and (error == errno.EINTR or (name, error) in WAITED_OUT):
                lasting = ""  # noqa: PLW2901 - for ever is a hang by contract
            directory = tmp_path / "life"
            told = build.live(directory, f"{name}:{nth}{lasting}:{error}", may_fail=True)
            fault = f"{name}:{nth}{lasting}:{errno.errorcode[error]}"
            was_reached |= told.hits.get(name, 0) >= nth
            tried += told.hits.get(name, 0) >= nth
            raised += told.failures
            try:
                assert told.exit == 0
                assert told.error is None, told.error
                assert told.held == []
                survives(directory, second=30, crashes=0)
            except Exception as problem:  # noqa: BLE001 - all of them are shown at the end
                wrong.append(f"{fault} {problem!r}")
            shutil.rmtree(directory)
        if not was_reached:
            break
    assert tried > 0
    assert not wrong, "\n".join(wrong)
    promise = "a system call that fails is an error; nothing is half published, lost or leaked"
    tally(promise, tried, "calls that failed")
    tally(promise, raised, "errors raised")
