"""The Java peers against each other: what one release writes, the others list and append to."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from java_peer import JavaPeer, JavaPeerError, Option

pytestmark = pytest.mark.java

START = 1_700_000_000_000
DAY_MS = 86_400_000
FIRST_INDEX = 19675 << 32
SMALL: dict[str, Option] = {"roll_cycle": "TEST4_DAILY", "block_size": 65536}
THREE_RELEASES = ("5.23.37", "5.27ea11", "2026.4")


@pytest.fixture(scope="module", params=THREE_RELEASES)
def peer(request: pytest.FixtureRequest) -> JavaPeer:
    return JavaPeer(request.param)


@pytest.fixture(scope="module")
def current() -> JavaPeer:
    return JavaPeer()


def test_what_is_written_is_listed_and_checked(peer: JavaPeer, tmp_path: Path) -> None:
    written = peer.run(
        "write", dir=tmp_path, count=40, kind="text,map,bytes,document", start=START, **SMALL
    )
    assert written == [f"{FIRST_INDEX + sequence:x}" for sequence in range(40)]
    listed = [line.split() for line in peer.run("list", dir=tmp_path)]
    assert [index for index, _, _ in listed] == written
    assert listed[0][1:] == ["10", b"\xe9message 0".hex()]
    found = peer.check(tmp_path)
    for count in ("count", "backward", "moved", "countExcerpts", "entryCount"):
        assert found[count] == 40
    assert (found["firstIndex"], found["lastIndex"]) == (written[0], written[-1])


def test_releases_read_each_other(peer: JavaPeer, current: JavaPeer, tmp_path: Path) -> None:
    peer.run("write", dir=tmp_path, count=10, start=START, **SMALL)
    assert current.run("list", dir=tmp_path) == peer.run("list", dir=tmp_path)
    current.run("write", dir=tmp_path, count=5, start=START)
    assert peer.check(tmp_path)["moved"] == 15


def test_listing_options(current: JavaPeer, tmp_path: Path) -> None:
    current.run("write", dir=tmp_path, count=4, kind="text,meta", start=START, **SMALL)
    forward = current.run("list", dir=tmp_path)
    assert len(forward) == 2
    assert current.run("list", dir=tmp_path, direction="backward") == forward[::-1]
    assert current.run("list", dir=tmp_path, limit=1) == forward[:1]
    assert current.run("list", dir=tmp_path, **{"from": forward[1].split()[0]}) == forward[1:]
    with_meta = current.run("list", dir=tmp_path, meta=True, read_only=True)
    assert [line for line in with_meta if line.endswith(" meta") and "6d657461" in line]


def test_raw_payloads_from_stdin(current: JavaPeer, tmp_path: Path) -> None:
    payloads = ["00", "ff" * 7, b"raw".hex()]
    current.run_with_input("write", "\n".join(payloads), dir=tmp_path, hex="-", **SMALL)
    assert [line.split()[2] for line in current.run("list", dir=tmp_path)] == payloads


def test_the_clock_decides_the_cycle(current: JavaPeer, tmp_path: Path) -> None:
    written = current.run("write", dir=tmp_path, count=3, start=START, step=DAY_MS, **SMALL)
    assert written == [f"{cycle << 32:x}" for cycle in (19675, 19676, 19677)]
    assert len(list(tmp_path.glob("*.cq4"))) == 3


def test_a_live_tailer_sees_a_live_producer(current: JavaPeer, tmp_path: Path) -> None:
    current.run("write", dir=tmp_path, count=0, **SMALL)
    with current.start("follow", dir=tmp_path, count=200) as follower:
        follower.expect("READY")
        acknowledged = current.run("produce", dir=tmp_path, id=9, count=200, ack=True)
        seen = follower.rest()
    assert acknowledged[0] == "READY"
    assert acknowledged[-1] == "DONE"
    acked = [line.split() for line in acknowledged[1:-1]]
    assert seen == [*(f"{index} 9 {counter}" for index, counter in acked), "DONE 200"]
    for line in current.run("list", dir=tmp_path):
        payload = bytes.fromhex(line.split()[2])
        assert zlib.crc32(payload[4:]) == int.from_bytes(payload[:4], "little")


def test_a_named_tailer_resumes(current: JavaPeer, tmp_path: Path) -> None:
    current.run("produce", dir=tmp_path, count=5, **SMALL)
    for counters in (["0", "1"], ["2", "3", "4"]):
        lines = current.run("follow", dir=tmp_path, count=len(counters), name="risk")
        assert [line.split()[2] for line in lines[1:-1]] == counters
    table = dict(line.split("=") for line in current.run("table", dir=tmp_path))
    assert int(table["index.risk"]) & 0xFFFFFFFF == 5


@pytest.mark.parametrize("held", ["hold_lock", "hold_open_document"])
def test_a_killed_holder_leaves_its_pid_in_the_lock(
    current: JavaPeer, tmp_path: Path, held: str
) -> None:
    current.run("write", dir=tmp_path, count=2, **SMALL)
    with current.start("produce", dir=tmp_path, count=1, **{held: True}) as producer:
        producer.read_until("HOLDING")
        assert f"chronicle.write.lock={producer.pid}" in current.run("table", dir=tmp_path)
        producer.kill()
    current.run("write", dir=tmp_path, count=1)
    assert current.check(tmp_path)["moved"] == 4


def test_a_tailer_is_scripted(current: JavaPeer, tmp_path: Path) -> None:
    current.run("write", dir=tmp_path, count=2, start=START, **SMALL)
    with current.start("tailer-script", dir=tmp_path, start=START) as tailer:
        assert tailer.ask("toEnd") == "ok"
        assert tailer.ask("index") == f"{FIRST_INDEX + 2:x}"
        assert tailer.ask("read") == "null"
        assert tailer.ask("appendText hello there") == f"{FIRST_INDEX + 2:x}"
        written = b"\xebhello there".hex()
        assert tailer.ask("read") == f"{FIRST_INDEX + 2:x} 12 {written}"
        assert tailer.ask("direction B") == "ok"
        assert tailer.ask("read").startswith(f"{FIRST_INDEX + 2:x} ")
        assert tailer.ask(f"moveToIndex {FIRST_INDEX + 1:x}") == "true"
        assert tailer.ask("state") == "FOUND_IN_CYCLE"
        assert tailer.ask("nonsense").startswith("! IllegalArgumentException")


def test_opening_reports_what_became_of_the_options(current: JavaPeer, tmp_path: Path) -> None:
    (line,) = current.run("open", dir=tmp_path / "sizes", index_count=12, index_spacing=3, **SMALL)
    assert {"indexCount": 16, "indexSpacing": 4}.items() <= json.loads(line).items()
    (line,) = current.run("open", dir=tmp_path / "wire", wire_type="TEXT", text="x", **SMALL)
    assert json.loads(line)["exception"] == "java.lang.UnsupportedOperationException"


def test_the_bench_sums_what_it_read(current: JavaPeer, tmp_path: Path) -> None:
    for loop in ("append-one", "tail"):
        (line,) = current.run("bench", dir=tmp_path, loop=loop, count=1000, warm_up=10, size=40)
        assert json.loads(line)["checksum"] == sum(range(10, 1010))


@pytest.mark.slow
def test_cut_fixtures_are_as_good_as_before(peer: JavaPeer, tmp_path: Path) -> None:
    names = [line.split()[0] for line in peer.run("golden", dir=tmp_path)]
    for name in ("text", "index_growth", "rolls_with_gap"):
        assert name in names
        directory = tmp_path / name
        _, *lines = (directory / "list.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        for read_only in (True, False):
            listed = peer.run("list", dir=directory, read_only=read_only)
            assert listed == [f"{row['index']} {row['len']} {row['hex']}" for row in rows]
        peer.run("write", dir=directory, count=1, start=START + 3 * DAY_MS)
        assert peer.check(directory)["moved"] == len(rows) + 1


def test_wrong_use_is_an_error(current: JavaPeer, tmp_path: Path) -> None:
    with pytest.raises(JavaPeerError, match="exit=2"):
        current.run("list", dir=tmp_path, colour="blue")
    with pytest.raises(JavaPeerError, match="missing --dir"):
        current.run("list")
