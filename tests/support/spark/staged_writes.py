"""Writes to a queue as Spark's sink stages and records them, without Spark, and a user's home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
from queues import payloads
from quire.maintenance.sink_writes import FOLDER
from quire.staged.batch_target import Target
from quire.staged.commits import commit
from quire.staged.staging import Part, PartWriter, Staging

TOKEN = "0123456789abcdef" * 2
MESSAGES = [b"one", b"two", b"three"]
OPTIONS: dict[str, Any] = {"block_bytes": 2**16}


def stage(path: Path, writer: str = "w", batch: int = 0, location: Path | None = None) -> Part:
    place = None if location is None else str(location)
    with PartWriter(Staging.of(str(path), place).batch(writer, batch), 0) as part:
        part.write(pa.array(MESSAGES, pa.large_binary()))
        found = part.finish()
    assert found is not None
    return found


def at(path: Path, location: Path | None = None) -> Target:
    return Target(str(path), OPTIONS, location=None if location is None else str(location))


def found(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue:
        return payloads(queue)


def left_half_done(
    path: Path, monkeypatch: pytest.MonkeyPatch, location: Path | None = None, writer: str = "w"
) -> Part:
    """A batch whose appending began, and of which nothing is in the queue."""

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    part = stage(path, writer, location=location)
    with monkeypatch.context() as patched:
        patched.setattr(quire.JournalAppender, "_write_column", full)
        with pytest.raises(OSError, match="no space left"):
            commit(at(path, location), writer, 0, [part])
    return part


class Home:
    """What a user has beside the queue; none of it may change, or come into the queue."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "1").mkdir(parents=True)
        (path / "1" / "part-00000.arrow").write_text("precious")
        (path / "secret").write_text("precious")
        (path / "done.json").write_text('{"batch": 7}')
        self._before = self.seen()

    def seen(self) -> dict[str, tuple[int, bytes | None]]:
        return {
            str(it.relative_to(self.path)): (
                it.stat().st_mode,
                it.read_bytes() if it.is_file() else None,
            )
            for it in [self.path, *self.path.rglob("*")]
        }

    @property
    def is_whole(self) -> bool:
        return self.seen() == self._before


def manifest(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    written: dict[str, Any] = {
        "writer": "w",
        "batch": 0,
        "token": TOKEN,
        "after": None,
        "parts": [],
        "kept": True,
        "block_bytes": 0,
        "elsewhere": False,
    }
    return written | changes


def put(path: Path, content: str, batch: str = "0") -> None:
    folder = path / FOLDER / "w" / batch
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(content)
