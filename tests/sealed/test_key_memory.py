"""The keys of a process: in no memory that a core dump has, and gone when the queue is closed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

import quire
from quire.maintenance import rewrap
from quire.sealed.key_file import KEYS

KEY: Final = bytes(range(7, 39))
NONCE_LEN: Final = 12
SMAPS: Final = Path("/proc/self/smaps")
SCRIPT: Final = """
import sys
import quire
path, key = sys.argv[1], bytes.fromhex(sys.argv[2])
def work():
    with quire.open(path, key=key) as queue, queue.appender() as appender, queue.tailer() as tailer:
        for number in range(100):
            appender.write_text(f"attack at dawn {number}")
            tailer.read_text()
        print("open", flush=True)
        sys.stdin.readline()
work()
print("closed", flush=True)
sys.stdin.readline()
"""


def data_key(path: Path) -> tuple[bytes, bytes]:
    """Return the data key, by the document alone, and the id of the queue."""
    found = json.loads((path / KEYS).read_bytes())
    [row], queue = found["keys"], bytes.fromhex(found["queue"])
    wrapped = bytes.fromhex(row["wrapped"])
    authenticated = b"quire data key 1" + queue + row["number"].to_bytes(4, "little")
    cipher = AESGCMSIV(KEY)
    return cipher.decrypt(wrapped[:NONCE_LEN], wrapped[NONCE_LEN:], authenticated), queue


def cycle_key(path: Path) -> bytes:
    key, queue = data_key(path)
    with quire.open(path, key=KEY, read_only=True) as opened:
        [cycle] = opened.cycles
    content = key + queue + cycle.to_bytes(4, "little", signed=True)
    return blake3(content, derive_key_context="quire 2026-11-26 key of a cycle").digest()


def memory_of(pid: int) -> Iterator[tuple[bool, bytes]]:
    """Yield what a process has in memory, and whether a core dump leaves it out."""
    place = (0, 0)
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            first, *rest = line.split()
            if not first.endswith(":"):
                start, end = (int(it, 16) for it in first.split("-"))
                is_readable = rest[0].startswith("r") and not rest[-1].startswith("[v")
                place = (start, end) if is_readable else (0, 0)
            elif first == "VmFlags:" and place != (0, 0):
                memory.seek(place[0])
                yield "dd" in rest, memory.read(place[1] - place[0])


def found_in(pid: int, key: bytes) -> set[bool]:
    return {is_left_out for is_left_out, content in memory_of(pid) if key in content}


@pytest.mark.skipif(not SMAPS.exists(), reason="needs Linux's /proc")
def test_keys_are_left_out_of_core_dumps(tmp_path: Path) -> None:
    path = tmp_path / "q"
    with quire.open(path, key=KEY) as queue, queue.appender() as appender:
        appender.write_text("attack at dawn")
    keys = (data_key(path)[0], cycle_key(path))
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), KEY.hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        assert found_in(child.pid, KEY) >= {False}  # Python's own: the test would see them
        assert found_in(child.pid, keys[0]) == {True}
        assert found_in(child.pid, keys[1]) <= {True}
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "closed\n"
        assert [found_in(child.pid, key) for key in keys] == [set(), set()]
        child.stdin.write("\n")
        child.stdin.flush()
    assert child.returncode == 0
    assert rewrap(path, key=KEY, new_key=bytes(32)) == 1
