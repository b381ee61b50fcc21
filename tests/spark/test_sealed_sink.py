"""Writes from Spark to encrypted queues: staged, finished, refused; no file shows a plain word."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import quire
import quire.spark
from queues import exit_code, fork, payloads
from quire._common.durable import SafeFolder
from quire.errors import (
    CorruptError,
    EncryptionError,
    MessageTooLargeError,
    OptionsError,
    UnfinishedWriteError,
)
from quire.maintenance import rewrap
from quire.maintenance.sink_writes import FOLDER
from quire.sealed.key_source import KeySource
from quire.spark.write.sink_options import WriteOptions
from quire.staged import commits
from quire.staged.batch_target import Target
from quire.staged.commits import commit, finish, has
from quire.staged.staging import Part, PartWriter, messages_of
from replicas import wait_until
from spark_queues import load

KEY: Final = bytes(range(1, 33))
OTHER: Final = bytes(range(2, 34))
WORD: Final = b"attack at dawn"
PARTS: Final = {0: 7, 1: 12, 2: 5}
CHUNK: Final = 5
open_any: Any = quire.open


def message(partition: int, row: int) -> bytes:
    return WORD + b" %d/%d" % (partition, row)


EXPECTED: Final = [message(it, row) for it, rows in PARTS.items() for row in range(rows)]


def key_file(folder: Path, key: bytes = KEY) -> Path:
    file = folder / f"key-{key[0]}"
    file.write_text(key.hex())
    return file


@pytest.fixture
def target(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """An encrypted queue that is not there yet."""
    monkeypatch.setattr(commits, "CHUNK_ROWS", CHUNK)
    return Target(str(path), {"block_bytes": 2**16}, key=KeySource(str(key_file(tmp_path))))


def stage(target: Target, writer: str = "w", batch: int = 0) -> list[Part]:
    folder, parts = target.staging.batch(writer, batch), list[Part]()
    for partition, rows in PARTS.items():
        messages = [message(partition, row) for row in range(rows)]
        with PartWriter(folder, partition, None, target.ring()) as writing:
            for first in range(0, rows, 4):
                writing.write(pa.array(messages[first : first + 4], pa.large_binary()))
            if (part := writing.finish()) is not None:
                parts.append(part)
    return parts


def found(path: Path, key: bytes = KEY) -> list[bytes]:
    wait = quire.WaitOptions(eof_grace_s=0.0)
    with open_any(path, read_only=True, key=key, allow_plain=True, wait=wait) as queue:
        return payloads(queue)


def showing(*roots: Path, word: bytes = WORD) -> list[str]:
    """The files that show a plain word."""
    files = [it for root in roots for it in root.rglob("*") if it.is_file()]
    return [it.name for it in files if word in it.read_bytes()]


def killed(target: Target, parts: list[Part], chunks: int, writer: str = "w") -> None:
    """Have a commit die before the chunk with this number."""

    def work() -> None:
        append, left = quire.JournalAppender._write_column, [chunks]

        def write(appender: quire.JournalAppender, *args: Any, **named: Any) -> int | None:  # noqa: ANN401
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return append(appender, *args, **named)

        setattr(quire.JournalAppender, "_write_column", write)  # noqa: B010 - in a child
        commit(target, writer, 0, parts)

    assert exit_code(fork(work)) == -signal.SIGKILL


def test_no_file_shows_a_plain_word_while_it_is_staged_and_after(
    path: Path, target: Target, tmp_path: Path
) -> None:
    plain = Target(str(tmp_path / "plain"), target.options)
    stage(plain)
    assert len(showing(tmp_path / "plain")) == len(PARTS)  # the test would see them

    parts = stage(target)
    assert showing(path) == []
    assert commit(target, "w", 0, parts)
    assert not commit(target, "w", 0, stage(target))

    assert showing(path) == []
    assert found(path) == EXPECTED
    assert not list((path / FOLDER).rglob("part-*"))


def test_a_part_is_read_as_it_was_staged(target: Target) -> None:
    part = stage(target)[1]
    with target.staging.batch("w", 0).opened() as folder:
        batches = [it.to_pylist() for it in messages_of(folder, part, target.ring())]
    assert batches == [[message(1, row) for row in range(at, at + 4)] for at in (0, 4, 8)]


@pytest.mark.parametrize("chunks", [0, 1, 3, 6])
def test_a_killed_write_is_finished_once(path: Path, target: Target, chunks: int) -> None:
    killed(target, stage(target), chunks)
    assert len(found(path)) < len(EXPECTED)
    assert showing(path) == []
    with pytest.raises(EncryptionError, match=r"encrypted: .*spark.finish by key="):
        finish(str(path))
    with pytest.raises(EncryptionError, match="none of the keys opens the queue"):
        finish(str(path), key=OTHER)
    if chunks % 2:
        assert finish(str(path), key=KEY) == 1
    assert has(str(path), "w", 0, key=KeySource(str(key_file(path.parent))))
    assert not commit(target, "w", 0, stage(target))
    assert found(path) == EXPECTED


def test_a_write_is_finished_by_the_default_key(path: Path, target: Target) -> None:
    killed(target, stage(target), 1)
    other, ring = (quire.KeyRing({"default": it}, current="default") for it in (OTHER, KEY))
    with other.as_default(), pytest.raises(EncryptionError, match="none of the keys"):
        finish(str(path))
    with ring.as_default():
        assert (finish(str(path)), finish(str(path))) == (1, 0)
    assert found(path) == EXPECTED


def test_a_write_is_finished_after_what_others_appended_plain(path: Path, target: Target) -> None:
    killed(target, stage(target), 1)
    with open_any(path, key=KEY):
        (path / "keys.quire").rename(path / "away")
        with open_any(path) as plain, plain.appender() as appender:
            appender.write_bytes(b"\x01plain")
        (path / "away").rename(path / "keys.quire")
    assert finish(str(path), key=KEY) == 1
    assert sorted(found(path)) == sorted([*EXPECTED, b"\x01plain"])


def test_marks_of_somebody_without_a_key_skip_no_row(path: Path, target: Target) -> None:
    killed(target, stage(target), 1)
    known = {*re.findall(rb"[0-9a-f]{32}", (path / FOLDER / "w/0/manifest.json").read_bytes())}
    assert known
    with open_any(path, key=KEY):
        (path / "keys.quire").rename(path / "away")
        with open_any(path) as plain, plain.appender() as appender:
            for token in known:  # whatever could be the one of the batch
                with appender.writing_document(metadata=True) as document:
                    document.write("quireSink", [token.decode(), 2, 3, 2])
        (path / "away").rename(path / "keys.quire")
    assert finish(str(path), key=KEY) == 1
    assert found(path) == EXPECTED


def test_an_unfinished_write_is_finished_after_the_key_was_changed(
    path: Path, target: Target
) -> None:
    killed(target, stage(target), 1)
    rings = [quire.KeyRing({"default": key}, current="default") for key in (KEY, OTHER)]
    assert rewrap(path, key=rings[0], new_key=rings[1]) == 1
    with pytest.raises(EncryptionError, match=r"opens a staged file: .*wrapped_by='default'"):
        finish(str(path), key=OTHER)
    both = quire.KeyRing({"old": KEY, "new": OTHER}, current="new")
    assert finish(str(path), key=both) == 1
    assert found(path, OTHER) == EXPECTED


def test_an_unfinished_write_holds_its_cycles_without_a_key(path: Path, target: Target) -> None:
    clock = quire.ManualClock(1_700_000_000_000)
    target = replace(target, options={**target.options, "clock": clock})
    killed(target, stage(target), 1)
    clock.advance(10 * 86_400_000)
    with open_any(path, key=KEY, clock=clock) as queue, queue.appender() as appender:
        appender.write_bytes(b"\x01later")
        appender.normalise_eofs()
    report = quire.prune(path, max_cycles=1, clock=clock)
    assert [it.reason for it in report.kept if "unfinished Spark write: write=w/0" in it.reason]
    assert finish(str(path), key=KEY) == 1
    assert sorted(found(path)) == sorted([*EXPECTED, b"\x01later"])


def change(file: Path, changed: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(file.read_bytes())
    changed(content)
    file.write_text(json.dumps(content))


def swap(values: list[list[Any]]) -> None:
    values[0][0], values[1][0] = values[1][0], values[0][0]


CHANGES: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "a part is left out": lambda it: it["parts"].pop(),
    "parts are swapped": lambda it: swap(it["parts"]),
    "it begins elsewhere": lambda it: it.update(after=None if it["after"] else 0),
    "another token": lambda it: it.update(token="0" * 32),
    "no seal": lambda it: it.pop("seal"),
    "no seal's text": lambda it: it.update(seal=[1]),
    "a short seal": lambda it: it.update(seal="00"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_manifest_that_was_changed_is_refused(path: Path, target: Target, kind: str) -> None:
    killed(target, stage(target), 1)
    before = found(path)
    change(path / FOLDER / "w" / "0" / "manifest.json", CHANGES[kind])
    with pytest.raises(UnfinishedWriteError, match="not a manifest of a sink"):
        finish(str(path), key=KEY)
    assert found(path) == before


def test_a_manifest_of_another_batch_or_queue_is_refused(
    path: Path, target: Target, tmp_path: Path
) -> None:
    killed(target, stage(target), 1)
    own = path / FOLDER / "w"
    (own / "0").rename(own / "1")
    with pytest.raises(UnfinishedWriteError, match="belongs to another batch"):
        finish(str(path), key=KEY)
    elsewhere = tmp_path / "elsewhere"
    open_any(elsewhere, key=KEY).close()
    (elsewhere / FOLDER / "w").mkdir(parents=True)
    (own / "1").rename(elsewhere / FOLDER / "w" / "0")
    with pytest.raises(UnfinishedWriteError, match="with a key of this queue"):
        finish(str(elsewhere), key=KEY)
    assert found(elsewhere) == []


RECORD_CHANGES: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "a later batch": lambda it: it.update(batch=7),
    "an earlier batch": lambda it: it.update(batch=0),
    "more rows": lambda it: it.update(rows=10**6),
    "more values": lambda it: it.update(more=1),
    "without a token": lambda it: it.pop("token"),
    "without a seal, as in a plain queue": lambda it: it.pop("seal"),
    "a seal that is no text": lambda it: it.update(seal=[1]),
    "a seal that is not in hexadecimal": lambda it: it.update(seal="zz"),
    "a short seal": lambda it: it.update(seal="00"),
    "a seal that is empty": lambda it: it.update(seal=""),
}


@pytest.mark.parametrize("kind", RECORD_CHANGES)
def test_a_record_that_was_changed_is_refused_and_drops_no_batch(
    path: Path, target: Target, kind: str
) -> None:
    assert commit(target, "w", 1, stage(target, batch=1))
    file = path / FOLDER / "w" / "done.json"
    written = file.read_bytes()
    change(file, RECORD_CHANGES[kind])
    for batch in (1, 2):
        with pytest.raises(CorruptError, match=r"not a record of a sink: file=.*done.json \("):
            commit(target, "w", batch, stage(target, batch=batch))
    with pytest.raises(CorruptError, match="not a record of a sink"):
        has(str(path), "w", 2, key=target.key if isinstance(target.key, KeySource) else KeySource())
    assert found(path) == EXPECTED
    file.write_bytes(written)
    assert not commit(target, "w", 1, stage(target, batch=1))
    assert commit(target, "w", 2, stage(target, batch=2))
    assert found(path) == EXPECTED * 2


def test_a_record_of_another_writer_queue_or_file_is_refused(
    path: Path, target: Target, tmp_path: Path
) -> None:
    other = replace(target, path=str(tmp_path / "other"))  # of the same key
    for place in (target, other):
        assert commit(place, "w", 7, stage(place, batch=7))
    record, strange = path / FOLDER / "w" / "done.json", path / FOLDER / "v" / "done.json"
    strange.parent.mkdir()
    strange.write_bytes(record.read_bytes())
    with pytest.raises(CorruptError, match="it was changed, or belongs to another batch"):
        commit(target, "v", 3, stage(target, "v", 3))
    record.write_bytes((tmp_path / "other" / FOLDER / "w" / "done.json").read_bytes())
    with pytest.raises(CorruptError, match="not made with a key of this queue"):
        commit(target, "w", 8, stage(target, batch=8))
    killed(target, stage(target, "u", 0), 1, "u")
    strange.write_bytes((path / FOLDER / "u" / "0" / "manifest.json").read_bytes())
    with pytest.raises(CorruptError, match="not a record of a sink"):
        commit(target, "v", 3, stage(target, "v", 3))


def test_a_forged_record_does_not_end_an_unfinished_write(path: Path, target: Target) -> None:
    killed(target, stage(target), 1)
    (path / FOLDER / "w" / "done.json").write_text('{"batch": 0}')
    with pytest.raises(CorruptError, match="it has no seal"):
        finish(str(path), key=KEY)
    assert list((path / FOLDER / "w" / "0").glob("part-*"))
    (path / FOLDER / "w" / "done.json").unlink()
    assert finish(str(path), key=KEY) == 1
    assert found(path) == EXPECTED


@pytest.mark.parametrize("copy", [shutil.copytree, quire.copy_queue], ids=["files", "queue"])
def test_records_go_with_a_copy_and_stay_valid_when_keys_change(
    path: Path, target: Target, tmp_path: Path, copy: Callable[[Path, Path], object]
) -> None:
    assert commit(target, "w", 0, stage(target))
    killed(target, stage(target, "v"), 1, "v")
    copy(path, tmp_path / "copy")
    copied = replace(target, path=str(tmp_path / "copy"))
    assert finish(copied.path, key=KEY) == finish(str(path), key=KEY) == 1
    assert found(tmp_path / "copy") == found(path) == EXPECTED * 2
    assert showing(tmp_path / "copy") == []
    for writer in ("w", "v"):
        assert not commit(copied, writer, 0, stage(copied, writer))

    new = quire.KeyRing({"new": OTHER}, current="new")
    rewrap(path, key=KEY, new_key=new)
    rewrapped = replace(target, key=new)
    assert not commit(rewrapped, "w", 0, stage(rewrapped))

    both = quire.KeyRing({"new": OTHER, "newer": KEY}, current="newer")
    rotated = replace(target, key=both)
    assert not commit(rotated, "w", 0, stage(rotated))
    assert found(path, OTHER) == EXPECTED * 2


def test_without_the_key_of_a_record_nothing_is_appended(path: Path, target: Target) -> None:
    assert commit(target, "w", 0, stage(target))
    both = quire.KeyRing({"old": KEY, "new": OTHER}, current="new")
    with open_any(path, key=both):
        pass  # makes the data key
    rotated = replace(target, key=quire.KeyRing({"new": OTHER}, current="new"))
    with pytest.raises(EncryptionError, match="data_key=1"):
        commit(rotated, "w", 1, stage(rotated, batch=1))
    assert found(path) == EXPECTED
    rotated = replace(target, key=both)
    assert commit(rotated, "w", 1, stage(rotated, batch=1))


def cut(file: Path) -> None:
    """Take the end away: what is left is a file of Arrow."""
    with pa.ipc.open_file(str(file)) as arrow:
        schema, batches = arrow.schema, [arrow.get_batch(it) for it in range(2)]
    with pa.ipc.new_file(str(file), schema) as out:
        for batch in batches:
            out.write_batch(batch)


def turn(file: Path) -> None:
    with pa.ipc.open_file(str(file)) as arrow:
        schema = arrow.schema
        batches = [arrow.get_batch(it) for it in (1, 0, *range(2, arrow.num_record_batches))]
    with pa.ipc.new_file(str(file), schema) as out:
        for batch in batches:
            out.write_batch(batch)


def put_another(file: Path) -> None:
    other = next(it for it in file.parent.glob("part-*") if it != file)
    file.write_bytes(other.read_bytes())


def put_plain(file: Path) -> None:
    schema = pa.schema([pa.field("message", pa.large_binary(), nullable=False)])
    with pa.ipc.new_file(str(file), schema) as out:
        column = pa.array([b"\x01forged"], pa.large_binary())
        out.write_batch(pa.RecordBatch.from_arrays([column], schema=schema))


@pytest.mark.parametrize("how", [cut, turn, put_another, put_plain])
def test_a_part_that_was_changed_is_not_appended(
    path: Path, target: Target, how: Callable[[Path], None]
) -> None:
    parts = stage(target)
    killed(target, parts, 0)
    how(path / FOLDER / "w" / "0" / parts[0].file)
    with pytest.raises(
        (UnfinishedWriteError, EncryptionError),
        match=r"not a file that a task staged|none of the keys",
    ):
        finish(str(path), key=KEY)
    assert found(path) == []


def test_a_part_of_another_key_stops_a_commit_before_it_begins(
    path: Path, target: Target, tmp_path: Path
) -> None:
    open_any(path, key=KEY).close()
    other = replace(target, key=KeySource(str(key_file(tmp_path, OTHER))))
    with pytest.raises(EncryptionError, match="opens a staged file"):
        commit(target, "w", 0, stage(other))
    with pytest.raises(EncryptionError, match="none of the keys opens the queue"):
        commit(other, "w", 0, stage(other))
    with pytest.raises(EncryptionError, match="the queue is encrypted"):
        commit(Target(str(path)), "w", 0, [])
    assert found(path) == []
    assert commit(target, "w", 1, stage(target, batch=1))


def test_a_message_may_be_as_long_as_the_queue_takes(path: Path, target: Target) -> None:
    limit = 2**16
    for length, fits in ((limit - 48, True), (limit - 47, False)):
        with PartWriter(target.staging.batch("w", 0), 0, limit, target.ring()) as writing:
            column = pa.array([b"\x01" * length], pa.large_binary())
            if not fits:
                with pytest.raises(MessageTooLargeError):
                    writing.write(column)
                continue
            writing.write(column)
            part = writing.finish()
            assert part is not None
            assert commit(target, "w", 0, [part])
    assert [len(it) for it in found(path)] == [limit - 48]


def numbers(spark: SparkSession, rows: int = 100) -> DataFrame:
    name = f"concat('{WORD.decode()} ', id) as name"
    return spark.range(0, rows, 1, 2).selectExpr("id as n", name)


def save(frame: DataFrame, path: Path, **options: object) -> None:
    writer = frame.write.format("quire").mode("append")
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save(str(path))


def rows(spark: SparkSession, path: Path, file: Path) -> list[int]:
    frame = load(spark, path, "_index long, n long, name string", keyFile=file)
    return [it.n for it in frame.orderBy("_index").collect()]


def test_spark_writes_what_it_reads_and_stages_nothing_plain(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    file, staging = key_file(tmp_path), tmp_path / "staging"
    save(numbers(spark), path, keyFile=file, writeId="once")
    save(numbers(spark), path, keyFile=file, writeId="once")
    assert rows(spark, path, file) == [*range(100)]

    more = {"keyFile": file, "writeId": "once", "batchId": 1, "stagingLocation": staging}

    def write() -> None:
        quire.spark.register(spark)  # in this thread
        save(numbers(spark), path, **more)

    with SafeFolder.at(path / FOLDER) as root, root.locked("lock", 10.0):
        thread = Thread(target=write)
        thread.start()
        wait_until(lambda: len(whole_parts(staging)) == 2)
        assert showing(path, staging) == []
    thread.join()

    assert rows(spark, path, file) == [*range(100)] * 2
    assert showing(path, staging) == []
    assert quire.verify(path).ok


def whole_parts(staging: Path) -> list[Path]:
    return [it for it in staging.rglob("part-*") if it.read_bytes().endswith(b"ARROW1")]


def test_a_stream_goes_on_in_an_encrypted_queue(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    file = key_file(tmp_path)
    source = tmp_path / "source"
    save(numbers(spark), source, keyFile=file)

    def run() -> None:
        reader = spark.readStream.format("quire").schema("n long, name string")
        writer = reader.option("keyFile", str(file)).load(str(source)).writeStream.format("quire")
        writer = writer.option("keyFile", str(file))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(str(path)).awaitTermination()

    run()
    run()
    assert rows(spark, path, file) == [*range(100)]
    save(numbers(spark, 10), source, keyFile=file)
    run()
    assert rows(spark, path, file) == [*range(100), *range(10)]
    assert showing(path, source, tmp_path / "checkpoint") == []


def test_what_is_refused_before_anything_is_written(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    open_any(path, key=KEY).close()
    quire.open(tmp_path / "plain").close()
    columns = numbers(spark).schema
    (tmp_path / "short").write_bytes(b"short")
    expired = tmp_path / "expired"
    expired.touch(0o600)
    ring = f"current = 'a'\nexpires = 2026-01-01T00:00:00Z\n[keys]\na = '{KEY.hex()}'\n"
    expired.write_text(ring)
    refused: list[tuple[Path | str, dict[str, object], str]] = [
        (path, {}, "the queue is encrypted"),
        (path, {"keyFile": key_file(tmp_path, OTHER)}, "none of the keys opens the queue"),
        (path, {"keyFile": tmp_path / "nothing"}, "No such file"),
        (path, {"keyFile": tmp_path / "short"}, "not a key of 32 bytes"),
        (path, {"keyFile": expired}, "the key has expired: name=a expired=2026-01-01"),
        (path, {"keyVariable": "NO_KEY_HERE"}, "the environment has no key"),
        (path, {"keyFile": "a", "keyVariable": "A"}, "keyFile or keyVariable, not both"),
        (path, {"key": KEY.hex()}, "unknown option: key"),
        (tmp_path / "plain", {"keyFile": key_file(tmp_path)}, "the queue is not encrypted"),
        (tmp_path / "new", {"keyFile": tmp_path / "nothing"}, "No such file"),
    ]
    for place, options, expected in refused:
        given = {"path": str(place), **{name: str(it) for name, it in options.items()}}
        with pytest.raises(OptionsError, match=expected) as raised:
            WriteOptions.of(given, columns, overwrite=False)
        assert KEY.hex() not in str(raised.value)
    with pytest.raises(PySparkException, match="the queue is encrypted"):
        save(numbers(spark), path)
    assert not (path / FOLDER).exists()
    assert not (tmp_path / "new").exists()
    assert found(path) == []


def test_no_plan_has_the_key(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    file = key_file(tmp_path)
    given = {"path": str(path), "keyFile": str(file)}
    options = WriteOptions.of(given, numbers(spark).schema, overwrite=False)
    sent = pickle.dumps(options)
    assert file.name.encode() in sent
    for shown in (repr(options), repr(sent)):
        assert KEY.hex() not in shown
        assert repr(KEY)[2:-1] not in shown
    with pytest.raises(TypeError, match="keys are not pickled"):
        pickle.dumps(Target(str(path), key=quire.KeyRing({"a": KEY}, current="a")))
