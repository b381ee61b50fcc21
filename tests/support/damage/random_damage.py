"""Queues damaged at random, and what of them can be read."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path

import quire
from damages import patch
from reference import Store

DAYS, PER_DAY = 3, 40
WORDS = 0x310  # positions below hold the header and the first arrays of a TEST4 file


def damage(path: Path, rng: random.Random) -> list[str]:
    """Damage one to three places of a queue; return what was done."""
    return [_damage_one(path, rng) for _ in range(rng.choice((1, 1, 2, 3)))]


def _damage_one(path: Path, rng: random.Random) -> str:
    file = rng.choice(sorted(path.glob("*.cq4*")))
    data = file.read_bytes()
    if not data:
        return f"{file.name} is empty already"
    used = min(len(data), _used(data) + 16)
    at = rng.randrange(rng.choice((min(used, WORDS), used)))
    what = rng.randrange(8)
    if what < 4:
        patch(file, at, bytes([data[at] ^ (1 << rng.randrange(8))]))
        return f"a bit of {file.name} at {at:#x}"
    if what == 4:
        count = rng.choice((4, 8, 64, 4096))
        patch(file, at, bytes(min(count, len(data) - at)))
        return f"{count} zeros in {file.name} at {at:#x}"
    if what == 5:
        os.truncate(file, at)
        return f"{file.name} cut at {at:#x}"
    if what == 6:
        patch(file, at & ~3, rng.randbytes(rng.choice((4, 8, 32)))[: len(data) - (at & ~3)])
        return f"garbage in {file.name} at {at & ~3:#x}"
    source = rng.randrange(used)
    patch(file, at, data[source : source + 64][: len(data) - at])
    return f"{file.name} copied from {source:#x} to {at:#x}"


def _used(data: bytes) -> int:
    with suppress(Exception):  # whatever is left of the file
        return Store(data).tail
    return len(data.rstrip(b"\0"))


def readable(path: Path) -> dict[int, bytes]:
    """Return what each index of a queue gives, as far as it gives something."""
    found: dict[int, bytes] = {}
    try:
        queue = quire.open(
            path, read_only=True, create=False, wait=quire.WaitOptions(eof_grace_s=0.0)
        )
    except (quire.QuireError, OSError):
        return found
    with queue, suppress(quire.QuireError, OSError), queue.tailer() as tailer:
        for cycle in queue.cycles:
            for sequence in range(PER_DAY + 2):
                with suppress(quire.QuireError, OSError):
                    index = queue.roll_cycle.to_index(cycle, sequence)
                    if tailer.move_to_index(index) and (data := tailer.read_bytes()) is not None:
                        found[index] = data
    return found
