"""A compressed file that declares more than a roll file holds is refused at its head or its end."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from damages import fill

BLOCK = 1 << 17
GIB = 1 << 30
READ = """
import sys, quire
queue = quire.open(sys.argv[1], read_only=True)
print("reading", flush=True)
queue.tailer().read_bytes()
"""


def replace_by_bomb(file: Path, gib: int) -> int:
    """Compress a file by hand, with zeros after it that it never had; return its new size."""
    content = file.read_bytes().ljust(-(-file.stat().st_size // BLOCK) * BLOCK, b"\0")
    frame = bytearray(b"\x28\xb5\x2f\xfd\xc0\x48")
    frame += struct.pack("<Q", len(content) + gib * GIB)
    for start in range(0, len(content), BLOCK):
        frame += struct.pack("<I", BLOCK << 3)[:3] + content[start : start + BLOCK]
    blocks = gib * GIB // BLOCK
    for last in [0] * (blocks - 1) + [1]:
        frame += struct.pack("<I", BLOCK << 3 | 1 << 1 | last)[:3] + b"\0"
    file.unlink()
    file.with_name(f"{file.name}.zst").write_bytes(frame)
    return len(frame)


def read_first(path: Path) -> bytes | None:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return tailer.read_bytes()


def test_a_small_file_that_declares_gibibytes_is_refused(path: Path) -> None:
    oldest, *_ = fill(path, 2, 20)
    assert replace_by_bomb(oldest, 32) < 3 << 20
    with pytest.raises(quire.errors.CorruptError, match="not a compressed roll file"):
        read_first(path)
    assert "unreadable-file" in {it.kind for it in quire.verify(path).findings}


def test_content_that_is_no_roll_file_ends_at_once(path: Path) -> None:
    oldest, *_ = fill(path, 2, 20)
    oldest.write_bytes(b"no roll file".ljust(BLOCK, b"."))
    replace_by_bomb(oldest, 3)
    with pytest.raises(quire.errors.CorruptError, match="does not begin as a roll file"):
        read_first(path)


@pytest.mark.slow
def test_an_interrupt_ends_it(path: Path) -> None:
    oldest, *_ = fill(path, 2, 20)
    replace_by_bomb(oldest, 3)  # not refused: as long as the largest block may be
    command = [sys.executable, "-c", READ, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"reading\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    assert child.returncode != 0
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
