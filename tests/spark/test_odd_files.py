"""Files of a queue that are none: nothing that Spark asks of one waits for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import quire
from queues import DAY_MS
from quire.errors import QuireError


@pytest.mark.parametrize("kind", ["a FIFO", "a link"])
def test_the_look_at_the_wire_type_waits_for_no_odd_file(
    kind: str, path: Path, tmp_path: Path, clock: quire.ManualClock
) -> None:
    from quire.opening.wire_types import stored_wire_type

    with quire.open(path, clock=clock, wire_type="FIELDLESS_BINARY") as queue:
        queue.appender().write_bytes(b"one")
        clock.advance(DAY_MS)
        queue.appender().write_bytes(b"two")
        newest = Path(queue.file_for_cycle(queue.cycles[-1]))
    assert stored_wire_type(str(path)) == "FIELDLESS_BINARY"
    moved = tmp_path / "elsewhere"
    newest.rename(moved)
    if kind == "a FIFO":
        os.mkfifo(newest)
    else:
        newest.symlink_to(moved)
    with pytest.raises((QuireError, OSError), match=newest.name):
        stored_wire_type(str(path))


@pytest.mark.parametrize("url", ["s3://bucket/orders", "quire://host/orders"])
def test_a_path_of_spark_is_no_url(url: str, path: Path) -> None:
    from quire.spark.topics import local_path

    with pytest.raises(quire.errors.UnsupportedError, match="reaches a server"):
        local_path(url)
    assert local_path(f"file:{path}") == local_path(f"file://{path}") == str(path)
