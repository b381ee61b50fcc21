"""Batches that are staged at a server and appended there, each once, also by Spark."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType
from redis.exceptions import ResponseError

import quire
import quire.spark
from cli_runs import run_here
from quire.errors import OptionsError, QuireError, RefusedError
from quire.spark.write.sink_options import WriteOptions
from quire.spark.write.sink_places import ServedPlace
from quire.staged.staging import Part
from served import command, connected, serving

WRITER = "query-1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "queues"


@pytest.fixture
def port(root: Path) -> Iterator[int]:
    with serving(root) as (port, _):
        yield port


def place_at(port: int) -> ServedPlace:
    return ServedPlace(f"quire://127.0.0.1:{port}/orders", {}, {"format": "chronicle"})


def stage(place: ServedPlace, batch: int, partition: int, messages: list[bytes]) -> Part:
    with place.staging(WRITER, batch, partition, None) as part:
        part.write(pa.array(messages, pa.large_binary()))
        found = part.finish()
    assert found is not None
    return found


def payloads(root: Path) -> list[bytes]:
    with quire.open(root / "orders", read_only=True) as queue:
        return [*queue.tailer().payloads()]


def left_over(root: Path) -> list[str]:
    return [it.name for it in (root / "orders" / ".quire-sink").rglob("part-*")]


def test_a_batch_is_appended_once_however_often_it_is_committed(root: Path, port: int) -> None:
    place = place_at(port)
    long = [b"%d" % number * 200_000 for number in range(9)]
    parts = [stage(place, 0, 1, long), stage(place, 0, 0, [b"a", b"b"])]
    assert payloads(root) == []
    assert place.commit(WRITER, 0, parts)
    assert payloads(root) == [b"a", b"b", *long], "in the order of the partitions"
    assert not place.commit(WRITER, 0, parts)
    again = [stage(place, 0, 0, [b"other"])]
    assert not place.commit(WRITER, 0, again)
    assert place.commit(WRITER, 1, [stage(place, 1, 0, [b"c"])])
    assert place.commit("query-2", 0, [])
    assert payloads(root) == [b"a", b"b", *long, b"c"]
    assert left_over(root) == []


def test_what_a_task_staged_goes_with_its_connection(root: Path, port: int) -> None:
    place = place_at(port)
    with place.staging(WRITER, 0, 0, None) as part:
        part.write(pa.array([b"x"], pa.large_binary()))
        assert len(left_over(root)) == 1
    stage(place, 0, 0, [b"y"])
    place.abort(WRITER, 0)
    with connected(port) as client:
        client.execute_command("QUIRE.SYNC", "orders")  # the thread that removed it is through
    assert payloads(root) == []
    with place.staging(WRITER, 0, 1, None) as part:
        assert part.finish() is None


@pytest.mark.check
def test_a_batch_whose_server_was_killed_is_finished_by_the_next(root: Path) -> None:
    with serving(root) as (port, process):
        place = place_at(port)
        parts = [stage(place, 0, 0, [b"%d" % number for number in range(30_000)])]
        words = [str(it) for it in parts[0]]
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(command("QUIRE.SINK", "COMMIT", "orders", WRITER, "0", *words))
            while not [*(root / "orders" / ".quire-sink").rglob("manifest.json")]:
                pass
            process.kill()
            process.wait()
    with serving(root) as (port, _):
        place_at(port).commit(WRITER, 0, parts)
    assert payloads(root) == [b"%d" % number for number in range(30_000)]


def packed(*messages: bytes) -> tuple[bytes, bytes]:
    offsets = [*accumulate(map(len, messages), initial=0)]
    return struct.pack(f"<{len(offsets)}i", *offsets), b"".join(messages)


def test_what_is_refused(root: Path, port: int) -> None:
    with connected(port) as client:

        def ask(*words: str | int | bytes) -> Any:  # noqa: ANN401 - whatever it says
            return client.execute_command("QUIRE.SINK", *words)

        with pytest.raises(ResponseError, match="NOTAQUEUE"):
            ask("OPEN", "orders", WRITER, 0, 0)
        client.execute_command("QUIRE.OPEN", "orders", "CREATE")
        client.execute_command("QUIRE.OPEN", "old", "CREATE", "format", "vanilla")
        with pytest.raises(ResponseError, match="UNSUPPORTED"):
            ask("OPEN", "old", WRITER, 0, 0)
        for writer in ("lock", "../x", "a/b", ".hidden", "", "é", "x" * 129):
            with pytest.raises(ResponseError, match="a writer's name"):
                ask("OPEN", "orders", writer, 0, 0)
        number = ask("OPEN", "orders", WRITER, 0, 0)
        offsets, data = packed(b"one", b"two")
        for wrong in (
            b"",
            b"\0",
            offsets[:4],
            offsets[::-1],
            struct.pack("<3i", 0, 9, 6),
            struct.pack("<3i", 0, 0, 6),
        ):
            with pytest.raises(ResponseError, match=r"INVALID"):
                ask("WRITE", "orders", number, wrong, data)
        with pytest.raises(ResponseError, match="CLOSED"):
            ask("WRITE", "orders", number + 1, offsets, data)
        with connected(port) as other, pytest.raises(ResponseError, match="CLOSED"):
            other.execute_command("QUIRE.SINK", "CLOSE", "orders", number)
        assert ask("WRITE", "orders", number, offsets, data) == b"OK"
        file, rows = ask("CLOSE", "orders", number)
        gone = b"part-00000-" + b"0" * 32 + b".arrow"
        with pytest.raises(ResponseError, match=r"UNFINISHEDWRITE .* nothing was appended"):
            ask("COMMIT", "orders", WRITER, 0, file, 0, rows, gone, 1, 1)
        for wrong_file in (b"../../other", b"done.json", file + b"x"):
            with pytest.raises(ResponseError, match="not a part"):
                ask("COMMIT", "orders", WRITER, 0, wrong_file, 0, rows)
        with pytest.raises(ResponseError, match="syntax error"):
            ask("TURN", "orders", WRITER, 0)
        assert ask("COMMIT", "orders", WRITER, 0, file, 0, rows) == 1
        open_at_once = [ask("OPEN", "orders", WRITER, 1, it) for it in range(256)]
        with pytest.raises(ResponseError, match="too many tailers, members of groups and parts"):
            ask("OPEN", "orders", WRITER, 1, 256)
        assert len({*open_at_once}) == 256
    assert payloads(root) == [b"one", b"two"]


def test_a_token_that_may_only_read_stages_nothing(tmp_path: Path, root: Path) -> None:
    ran = run_here("token", "add", "reader", "--tokens", tmp_path / "tokens", "--read", "*")
    with quire.open(tmp_path / "queues" / "orders"):
        pass
    with serving(root, "--tokens", tmp_path / "tokens") as (port, _):
        place = ServedPlace(f"quire://127.0.0.1:{port}/orders", {"token": ran.out.strip()})
        with pytest.raises(RefusedError, match="NOPERM"), place.staging(WRITER, 0, 0, None):
            pass
    assert left_over(root) == []


def test_nothing_is_staged_for_an_encrypted_queue(root: Path, tmp_path: Path) -> None:
    open_any: Any = quire.open
    open_any(root / "orders", key=bytes(range(32))).close()
    with serving(root) as (port, _), pytest.raises(QuireError, match="encrypted"):
        stage(place_at(port), 0, 0, [b"attack at dawn"])
    assert left_over(root) == []
    given = {"path": "quire://127.0.0.1:1/orders", "keyFile": str(tmp_path / "key")}
    columns = StructType([StructField("n", LongType())])
    with pytest.raises(OptionsError, match="a server has no key"):
        WriteOptions.of(given, columns, overwrite=False)


@pytest.mark.spark
def test_spark_writes_to_a_server(spark: Any, root: Path, tmp_path: Path) -> None:  # noqa: ANN401
    quire.spark.register(spark)
    every = ["--read", "--append", "--create"]
    rights = [word for it in every for word in (it, "*")]
    ran = run_here("token", "add", "writer", "--tokens", tmp_path / "tokens", *rights)
    with serving(root, "--tokens", tmp_path / "tokens") as (port, _):
        reached = {"token": ran.out.strip(), "writeId": "once"}
        url = f"quire://127.0.0.1:{port}/made/new"
        frame = spark.range(100, numPartitions=3).withColumnRenamed("id", "n")
        for _ in range(2):
            frame.write.format("quire").options(**reached).mode("append").save(url)
        with quire.open(root / "made" / "new", read_only=True) as queue:
            assert [it.to_dict()["n"] for it in queue.tailer()] == [*range(100)]
        source = spark.readStream.format("quire").schema("n long").option("token", reached["token"])
        writer = source.load(url).writeStream.format("quire").option("token", reached["token"])
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        target = f"quire://127.0.0.1:{port}/copied"
        assert writer.trigger(availableNow=True).start(target).awaitTermination(600) is not False
        found = spark.read.format("quire").schema("n long").option("token", reached["token"])
        assert sorted(it.n for it in found.load(target).collect()) == [*range(100)]
