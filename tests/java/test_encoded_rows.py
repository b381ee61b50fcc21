"""Java reads rows of Arrow batches as messages, and what a sink of Spark leaves in a queue."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import quire
from java_peer import JavaPeer
from queues import payloads
from quire.staged.batch_target import Target
from quire.staged.commits import commit
from quire.staged.staging import PartWriter, Staging

pytestmark = pytest.mark.java

START = 1_700_000_000_000
ROWS = 50


def batch() -> pa.RecordBatch:
    rows = [
        {
            "number": number - 25,
            "price": number / 8,
            "name": "caf\xe9" * number,
            "done": number % 2 == 0,
            "none": None,
            "data": bytes(range(number)),
            "listed": [number, None],
            "inner": {"a": number, "b": "x"},
        }
        for number in range(ROWS)
    ]
    columns: pa.RecordBatch = pa.RecordBatch.from_pylist(rows)
    return columns


def test_java_writes_rows_again_as_they_were(tmp_path: Path) -> None:
    clock = quire.ManualClock(START)
    with (
        quire.open(tmp_path, roll_cycle="TEST4_DAILY", block_bytes=65536, clock=clock) as queue,
        queue.appender() as appender,
    ):
        last = appender.write_batch(batch())
        assert last is not None
        written = payloads(queue)

    with JavaPeer().start("tailer-script", dir=tmp_path, start=START) as java:
        for number in range(ROWS):
            assert java.ask("echoMap") == f"{last + 1 + number:x}"

    with quire.open(tmp_path, read_only=True) as queue:
        assert payloads(queue) == written * 2


def test_java_passes_over_the_marks_of_a_sink_and_goes_on(tmp_path: Path) -> None:
    peer, path = JavaPeer(), tmp_path / "queue"
    options = {"roll_cycle": "TEST4_DAILY", "block_bytes": 65536, "clock": lambda: START}
    target = Target(str(path), options)
    sent: list[bytes] = []
    for number in range(3):
        with PartWriter(Staging.of(str(path)).batch("w", number), 0) as part:
            messages = [b"\xb9\x01n\xa1%c" % row for row in range(40 + number)]
            part.write(pa.array(messages, pa.large_binary()))
            commit(target, "w", number, [found for found in [part.finish()] if found])
        peer.run("write", dir=path, count=2, kind="text", start=START)
        sent += [*messages, b"", b""]

    listed = [bytes.fromhex(line.split()[2]) for line in peer.run("list", dir=path)]

    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == listed
    assert len(listed) == len(sent)
    assert all(wanted in {b"", found} for wanted, found in zip(sent, listed, strict=True))
    found = peer.check(path)
    for count in ("count", "backward", "moved", "countExcerpts", "entryCount"):
        assert found[count] == len(sent), count
