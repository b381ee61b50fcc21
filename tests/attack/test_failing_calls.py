"""Every system call of the kernel fails, whenever it is made, as the system may have it fail."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fault_peer import FaultBuild, calls, least, sample, survives
from tally import Tally, limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 14_400))]

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


@pytest.fixture(scope="module")
def build() -> Iterator[FaultBuild]:
    with FaultBuild() as build:
        yield build


@pytest.fixture(scope="module")
def hits(build: FaultBuild, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How often a life comes by each call."""
    one, other = (build.live(tmp_path_factory.mktemp("undisturbed"), may_fail=True) for _ in "12")
    return least(one, other)


def faults(number: int) -> list[tuple[int, str]]:
    """Return which errors the Nth call gives, once or from then on: all, or some in turn."""
    every = [(error, lasting) for lasting in ("", "+") for error in ERRORS]
    count = scaled(1, len(every))
    return [every[(number + other) % len(every)] for other in range(count)]


@pytest.mark.parametrize("name", calls())
def test_a_call_that_fails_is_an_error_and_nothing_more(
    build: FaultBuild,
    hits: dict[str, int],
    tmp_path: Path,
    tally: Tally,
    name: str,
) -> None:
    """The same handles go on, or fresh ones; what had returned stays; nothing is half there."""
    wrong: list[str] = []
    tried = raised = 0
    for number, nth in enumerate(sample(name, hits[name], scaled(8, hits[name]))):
        for error, lasting in faults(number + len(name)):
            if lasting and (error == errno.EINTR or (name, error) in WAITED_OUT):
                lasting = ""  # noqa: PLW2901 - for ever is a hang by contract
            directory = tmp_path / "life"
            outcome = build.live(directory, f"{name}:{nth}{lasting}:{error}", may_fail=True)
            fault = f"{name}:{nth}{lasting}:{errno.errorcode[error]}"
            tried += 1
            raised += outcome.failures
            try:
                assert outcome.exit == 0
                assert outcome.hits[name] >= nth or nth > 1  # it depends on time, and was not made
                assert outcome.error is None, outcome.error
                assert outcome.held == []
                survives(directory, second=30, crashes=0)
            except Exception as problem:  # noqa: BLE001 - all of them are shown at the end
                wrong.append(f"{fault} {problem!r}")
            shutil.rmtree(directory)
    assert not wrong, "\n".join(wrong)
    promise = "A system call that fails is an error; nothing is half published, lost or leaked"
    tally(promise, tried, "calls that failed")
    tally(promise, raised, "errors raised")
