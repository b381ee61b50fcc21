"""Queues damaged at random and repaired: no crash, no hang, no readable message is lost."""

from __future__ import annotations

import logging
import mmap
import random
import shutil
import signal
from pathlib import Path

import pytest

import quire
from damages import fill
from queues import copy_of, exit_code, fork
from random_damage import DAYS, PER_DAY, damage, readable
from tally import RUN, Tally, limit_s, scaled

CASES = scaled(200, 10_000)
LIMIT_S = 300  # for one of them
SEED = 20_261_122 + 10_000 * RUN


@pytest.mark.timeout(limit_s(900, 7200))
def test_nothing_readable_is_lost(tmp_path: Path, tally: Tally) -> None:
    whole = tmp_path / "whole"
    fill(whole, DAYS, PER_DAY)
    label = mmap.mmap(-1, 1024)

    def child() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        logging.disable()
        for number in range(CASES):
            signal.alarm(LIMIT_S)
            path = copy_of(whole, tmp_path / str(number))
            done = damage(path, random.Random(SEED + number))  # noqa: S311 - to be repeated
            label[:] = f"{number}: {', '.join(done)}".encode().ljust(1024)[:1024]
            check(path)
            shutil.rmtree(path)

    code = exit_code(fork(child))
    assert code == 0, f"{label[:].strip(bytes([32, 0])).decode()}: exit code {code}"
    tally("No readable message is lost by a repair", CASES, "damaged queues")


def check(path: Path) -> None:
    before = readable(path)
    try:
        quire.verify(path)
        report = quire.repair(path, dry_run=False)
    except (quire.QuireError, OSError):
        assert readable(path) == before
        return
    after = readable(path)
    lost = {index: data for index, data in before.items() if after.get(index) != data}
    assert not lost, (lost, report.actions)
    again = quire.repair(path, dry_run=False)
    assert again.actions == (), again.actions
    assert report.after.findings == again.before.findings
