"""Vanilla Chronicles and Quick-Queues damaged at random and repaired: no message is lost by it."""

from __future__ import annotations

import logging
import mmap
import os
import random
import shutil
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

import quire
from damages import patch
from older_queues import FORMATS, fill, found, wires
from queues import exit_code, fork
from tally import RUN, Tally, limit_s, scaled

CASES = scaled(200, 10_000)
LIMIT_S = 300  # for one of them
SEED = 20_261_122 + 10_000 * RUN
DAYS, PER_DAY = 3, 40


@pytest.mark.slow
@pytest.mark.timeout(limit_s(900, 7200))
@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_readable_is_lost(kind: str, tmp_path: Path, tally: Tally) -> None:
    messages = wires(range(DAYS * PER_DAY), tmp_path / "wires")
    days = [messages[day * PER_DAY : (day + 1) * PER_DAY] for day in range(DAYS)]
    whole = fill(tmp_path / "whole", kind, days)
    indexes = [index for index, _ in found(whole)]
    assert len(indexes) == DAYS * PER_DAY
    label = mmap.mmap(-1, 1024)

    def child() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        logging.disable()
        for number in range(CASES):
            signal.alarm(LIMIT_S)
            path = Path(shutil.copytree(whole, tmp_path / str(number)))
            done = damage(path, random.Random(SEED + number))  # noqa: S311 - to be repeated
            label[:] = f"{number}: {', '.join(done)}".encode().ljust(1024)[:1024]
            check(path, indexes)
            shutil.rmtree(path)

    code = exit_code(fork(child))
    assert code == 0, f"{label[:].strip(bytes([32, 0])).decode()}: exit code {code}"
    tally("No readable message is lost by a repair", CASES, "damaged queues")


def check(path: Path, indexes: Iterable[int]) -> None:
    before = readable(path, indexes)
    try:
        quire.verify(path)
        report = quire.repair(path, dry_run=False)
    except (quire.QuireError, OSError):
        assert readable(path, indexes) == before
        return
    after = readable(path, indexes)
    # An index of a Vanilla Chronicle that is rebuilt has no free entry, so messages may move.
    lost = {*before.values()} - {*after.values()}
    assert not lost, (lost, report.actions)
    again = quire.repair(path, dry_run=False)
    assert again.actions == (), again.actions


def readable(path: Path, indexes: Iterable[int]) -> dict[int, bytes]:
    """Return what each index gives, as far as it gives something."""
    found: dict[int, bytes] = {}
    with (
        suppress(quire.QuireError, OSError),
        quire.open(path, read_only=True, create=False) as queue,
        queue.tailer() as tailer,
    ):
        for index in indexes:
            with suppress(quire.QuireError, OSError):
                if tailer.move_to_index(index) and (data := tailer.read_bytes()) is not None:
                    found[index] = data
    return found


def damage(path: Path, rng: random.Random) -> list[str]:
    """Damage one to three places; return what was done."""
    return [damage_one(path, rng) for _ in range(rng.choice((1, 1, 2, 3)))]


def damage_one(path: Path, rng: random.Random) -> str:
    files = sorted(it for it in path.rglob("*") if it.is_file() and it.stat().st_size)
    if not files:
        return "nothing is left"
    file = rng.choice(files)
    data = file.read_bytes()
    at = rng.randrange(min(len(data), len(data.rstrip(b"\0")) + 16))
    what = rng.choice(("bit", "bit", "bit", "zeros", "garbage", "cut", "removed"))
    if what == "bit":
        patch(file, at, bytes([data[at] ^ (1 << rng.randrange(8))]))
    elif what == "zeros":
        patch(file, at, bytes(min(rng.choice((4, 8, 64, 4096)), len(data) - at)))
    elif what == "garbage":
        patch(file, at & ~3, rng.randbytes(rng.choice((4, 8, 32)))[: len(data) - (at & ~3)])
    elif what == "cut":
        os.truncate(file, at)
    else:
        file.unlink()
    return f"{what} in {file.name} at {at:#x}"
