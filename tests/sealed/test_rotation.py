"""Keys are rotated while others have the queue open: those with both keys keep working."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

import quire
from quire.errors import EncryptionError
from quire.maintenance import rewrap
from quire.sealed.key_file import KEYS

KEY: Final = bytes(range(32))
OTHER: Final = bytes(range(1, 33))
open_any: Any = quire.open


def fill(path: Path, ring: quire.KeyRing) -> None:
    with quire.open(path, key=ring) as queue, queue.appender() as appender:
        appender.write_text("attack at dawn")


def rings(old: bytes = KEY, new: bytes = OTHER) -> tuple[quire.KeyRing, quire.KeyRing]:
    """Key rings that encrypt by the old key, and by the new one."""
    keys = {"2026": old, "2027": new}
    return quire.KeyRing(keys, current="2026"), quire.KeyRing(keys, current="2027")


@pytest.mark.parametrize("wire_type", ["BINARY_LIGHT", "DELTA_BINARY"])
def test_those_at_work_with_both_keys_go_on_over_a_rotation(tmp_path: Path, wire_type: str) -> None:
    vault = tmp_path / "q"
    before, after = rings()
    options: dict[str, Any] = {"wire_type": wire_type}
    with (
        open_any(vault, key=before, **options) as queue,
        queue.appender() as appender,
        open_any(vault, key=before, read_only=True) as reading,
        reading.tailer() as tailer,
        open_any(vault, key=KEY, read_only=True) as without,
    ):
        appender.write_map({"n": 0, "name": "attack at dawn" * 9})
        assert tailer.read_map()["n"] == 0
        with open_any(vault, key=after, **options) as rotated, rotated.appender() as newer:
            for number in range(1, 5):
                (newer if number % 2 else appender).write_map({"n": number, "name": "attack" * 9})
        assert [it["n"] for it in iter(tailer.read_map, None)] == [1, 2, 3, 4]
        with queue.tailer() as other:
            assert [it["n"] for it in iter(other.read_map, None)] == [0, 1, 2, 3, 4]
        with without.tailer() as other, pytest.raises(EncryptionError, match=r"data_key=\d+"):
            list(iter(other.read_map, None))
        with open_any(vault, key=OTHER) as second, second.appender() as newest:
            newest.write_map({"n": 5})  # by the data key that is there
        keys = {"2026": KEY, "2027": OTHER, "2028": secrets.token_bytes(32)}
        third = quire.KeyRing(keys, current="2028")
        with open_any(vault, key=third) as later, later.appender() as newest:
            newest.write_map({"n": 6})
        assert tailer.read_map()["n"] == 5
        with pytest.raises(EncryptionError, match=r"data_key=\d+"):  # it does not have that key
            tailer.read_map()
        rewrap(vault, key=third, new_key=after)
        assert tailer.read_map()["n"] == 6  # now it does


@pytest.mark.parametrize("kind", ["gone", "link", "pipe", "damaged", "deep", "another queue's"])
def test_wrapped_keys_that_are_none_give_no_data_key_to_those_at_work(
    tmp_path: Path, kind: str
) -> None:
    vault, other = tmp_path / "q", tmp_path / "other"
    before, after = rings()
    fill(vault, before)
    fill(other, before)
    fill(other, after)
    with quire.open(vault, key=before, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.read_text() == "attack at dawn"
        fill(vault, after)
        kept = (vault / KEYS).rename(tmp_path / "kept")
        if kind == "link":
            (vault / KEYS).symlink_to(kept)
        elif kind == "pipe":
            os.mkfifo(vault / KEYS)
        elif kind == "another queue's":
            shutil.copy(other / KEYS, vault / KEYS)
        elif kind != "gone":
            content = {"damaged": kept.read_bytes()[:-9], "deep": b"[" * 200_000}[kind]
            (vault / KEYS).write_bytes(content)
        for _ in range(2):
            with pytest.raises(EncryptionError, match=r"data_key=\d+"):
                tailer.read_text()
        kept.replace(vault / KEYS)
        assert tailer.read_text() == "attack at dawn"
