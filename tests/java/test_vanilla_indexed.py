"""Indexed Chronicles that Java writes, read at the same time; and Java's reader on other ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from indexed_reference import written
from java_peer import JavaPeer
from vanilla_java import vanilla_java

pytestmark = pytest.mark.java

PAYLOADS = [b"%d " % number * (number % 40 + 1) for number in range(300)]


@pytest.fixture(scope="module")
def java() -> JavaPeer:
    return vanilla_java()


def hexadecimal(payloads: list[bytes]) -> str:
    return "".join(f"{payload.hex()}\n" for payload in payloads)


def test_java_appends_to_what_is_being_read(java: JavaPeer, tmp_path: Path) -> None:
    path = tmp_path / "q"
    indexes = java.run_with_input("indexed-write", hexadecimal(PAYLOADS[:100]), path=path)
    with quire.open(path, format="indexed") as queue, queue.tailer() as tailer:
        assert tailer.read_many(1_000) == PAYLOADS[:100]
        indexes += java.run_with_input("indexed-write", hexadecimal(PAYLOADS[100:]), path=path)
        assert [excerpt.data for excerpt in tailer] == PAYLOADS[100:]
        tailer.to_start()
        assert [excerpt.index for excerpt in tailer] == [int(index) for index in indexes]


def test_java_reads_what_the_second_writer_wrote(java: JavaPeer, tmp_path: Path) -> None:
    known = written(tmp_path / "q", PAYLOADS)
    *listed, last = (line.split() for line in java.run("indexed-list", path=tmp_path / "q"))
    found = [(int(row[0]), bytes.fromhex(row[2])) for row in listed if row[1] != "padding"]
    assert found == known
    assert last == ["last", str(known[-1][0])]
