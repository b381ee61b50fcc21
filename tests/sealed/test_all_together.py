"""
All that protects messages at once, on one queue, while what works on it is killed.

A queue that is compressed, encrypted and sealed is replicated, its cycles are compressed, archived
and removed, and Spark reads what is left together with the archive. Appenders, a source and a sink
are killed between two messages, wherever that is; verbs before each step that makes something
durable, until a run comes to its end.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from pyspark.sql import SparkSession

import quire
import quire.spark
from cli_runs import Cli, run_here, started
from ports import free_port
from queues import DAY_MS, START_MS, exit_code, fork
from replicas import last_index, messages, wait_until

KEY: Final = bytes(range(1, 33))
WORD: Final = "attack at dawn"
PER_DAY: Final = 40
LAYOUT: Final[dict[str, Any]] = {"roll_cycle": "TEST4_DAILY", "block_bytes": 1 << 16}
SCHEMA: Final = '{"n": "int64", "word": "utf8"}'
COLUMNS: Final = ("_index", "payload", "n", "word")
open_any: Any = quire.open


class Place:
    """The queue, its replica, the archive, and the keys; a party may be killed at any time."""

    def __init__(self, folder: Path, options: dict[str, Any], cli: Cli) -> None:
        self.cli, self.options = cli, {**LAYOUT, **options, "key": KEY, "integrity": True}
        self.queue, self.replica = folder / "source" / "orders", folder / "replica" / "orders"
        self.archive = folder / "archive"
        self.kept = {it: folder / f"{it.parent.name}.checkpoint" for it in self.both}
        self.key_file, self.schema = folder / "key", folder / "schema.json"
        self.key_file.write_bytes(KEY)
        self.schema.write_text(SCHEMA)
        self.signer, self.public = folder / "key.pem", folder / "key.pub"
        key = Ed25519PrivateKey.generate()
        self.signer.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        self.public.write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        self.port = free_port()

    @property
    def both(self) -> tuple[Path, Path]:
        return self.queue, self.replica

    def append(self, past: int, acknowledge: Callable[[int], object] = id) -> None:
        """Append what is missing of as many messages, each to the cycle that its number says."""
        clock = quire.ManualClock(START_MS)
        with open_any(self.queue, clock=clock, **self.options) as queue:
            with queue.tailer() as tailer:
                tailer.direction = "backward"
                tailer.to_end()
                last = next(iter(tailer), None)
            first = 0 if last is None else last.to_dict()["n"] + 1
            with queue.appender() as appender:
                for number in range(first, past):
                    clock.now_ms = START_MS + number // PER_DAY * DAY_MS
                    appender.write_map(fields(number))
                    acknowledge(number)

    def append_killed(self, acknowledged: int) -> None:
        """Have an appender die after it has acknowledged this message, and perhaps a few more."""
        reading, writing = os.pipe()

        def work() -> None:
            self.append(acknowledged + PER_DAY // 2, lambda it: os.write(writing, b"%d\n" % it))
            signal.pause()

        pid = fork(work)
        os.close(writing)
        with os.fdopen(reading, "rb") as told:
            for line in told:
                if int(line) >= acknowledged:
                    break
        os.kill(pid, signal.SIGKILL)
        assert exit_code(pid) == -signal.SIGKILL

    @contextmanager
    def replicating(self) -> Generator[None]:
        """Have both verbs run, and end once the replica has everything."""
        with self.source() as source, self.sink() as sink:
            yield
            wait_until(lambda: last_index(self.replica) == last_index(self.queue))
            for process in (sink, source):
                process.terminate()
                process.communicate()
                assert process.returncode == 0

    @contextmanager
    def source(self) -> Generator[subprocess.Popen[bytes]]:
        """Have a source run; it is killed on leaving."""
        address = f"127.0.0.1:{self.port}"
        with started("replicate", "source", self.queue, "--listen", address) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == f"listening {address}\n".encode()
            yield process

    @contextmanager
    def sink(self) -> Generator[subprocess.Popen[bytes]]:
        """Have a sink run until it has what was there; it is killed on leaving."""
        there, address = last_index(self.queue), f"127.0.0.1:{self.port}"
        with started("replicate", "sink", self.replica, "--from", address) as process:
            wait_until(lambda: last_index(self.replica) >= there)
            yield process

    def seal(self) -> None:
        """Seal both, each with a checkpoint of its own."""
        for it in self.both:
            killed_until_done("seal", it, "--sign", self.signer, "--checkpoint", self.kept[it])

    def verify(self) -> None:
        """Both are as they were sealed and signed."""
        for it in self.both:
            trusted = ("--seals", "--trust", self.public, "--since", self.kept[it])
            ran = self.cli("verify", it, *trusted)
            assert ran.code == 0, ran

    def prove(self, index: int) -> list[tuple[Path, Path]]:
        """Return proofs of a message, one from each place, with what they prove."""
        folder = self.archive.parent
        names = [it.parent.name for it in self.both]
        made = [(folder / f"{it}.proof", folder / f"{it}.stored") for it in names]
        for it, (proof, stored) in zip(self.both, made, strict=True):
            ran = self.cli.ok("prove", it, hex(index), "--message-to", stored)
            proof.write_bytes(ran.raw)
        return made

    def check_proofs(self, made: list[tuple[Path, Path]]) -> None:
        """The proof of each place is one of the same stored bytes at the other one."""
        for (proof, _), (_, stored) in zip(made, reversed(made), strict=True):
            self.cli.ok("check-proof", proof, "--trust", self.public, "--message", stored)

    def table(self, spark: SparkSession, path: Path) -> list[tuple[int, bytes, int, str]]:
        """Return what Spark has of the archive and the rest of a queue."""
        frame = quire.spark.table(spark, path, self.archive, keyFile=self.key_file)
        found = frame.select(*COLUMNS).orderBy("_index").collect()
        return [(it._index, bytes(it.payload), it.n, it.word) for it in found]


def fields(number: int) -> dict[str, Any]:
    return {"n": number, "word": word(number), "rest": "all quiet " * 20}


def word(number: int) -> str:
    return f"{WORD} {number}"


def killed_until_done(*arguments: str | Path) -> int:
    """Run a verb, killed before its first durable step, its second, …; return how many kills."""
    for steps in count():
        code = exit_code(fork(partial(dying, steps, arguments)))
        if code == 0:
            return steps
        assert code == -signal.SIGKILL
    raise AssertionError


def dying(steps: int, arguments: tuple[str | Path, ...]) -> None:
    left = [steps]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)

        return call

    for name in ("fsync", "rename", "unlink"):
        setattr(os, name, counted(getattr(os, name)))
    ran = run_here(*arguments)
    assert ran.code == 0, ran


def plain_bytes(file: Path) -> bytes:
    """Return what is in a file, decompressed."""
    content = file.read_bytes()
    if file.suffix == ".zst":
        with pa.input_stream(pa.py_buffer(content), compression="zstd") as stream:
            return bytes(stream.read())
    return content


def showing(*roots: Path) -> list[str]:
    files = [it for root in roots for it in root.rglob("*") if it.is_file()]
    return [it.name for it in files if WORD.encode() in plain_bytes(it)]


def cycles(path: Path) -> list[str]:
    return sorted(it.name for it in path.glob("*.cq4*") if it.suffix != ".cq4t")


@pytest.mark.check
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"compression": "zstd"}, id="zstd"),
        pytest.param({"compression": "zstd", "wire_type": "DELTA_BINARY"}, id="differences"),
    ],
)
def test_nothing_is_lost_repeated_or_shown(
    options: dict[str, Any], spark: SparkSession, cli: Cli, tmp_path: Path
) -> None:
    place = Place(tmp_path, options, cli)
    place.append(PER_DAY // 2)
    with place.source():
        with place.sink():
            place.append_killed(PER_DAY)
        with place.sink():
            place.append_killed(2 * PER_DAY)
    with place.replicating():
        place.append(3 * PER_DAY)
    place.seal()
    place.verify()
    everything = messages(place.queue, KEY)
    proofs = place.prove(everything[0][0])
    place.check_proofs(proofs)

    for it in place.both:
        assert killed_until_done("prune", it, "--max-cycles", "2", "--compress")
        assert len([name for name in cycles(it) if name.endswith(".zst")]) == 1
    with_key = ("--key-file", place.key_file)
    columns = ("--schema", place.schema)
    assert killed_until_done("archive", place.queue, place.archive, *columns, *with_key)
    assert messages(place.queue, KEY) == messages(place.replica, KEY) == everything
    place.verify()

    with place.replicating():
        place.append_killed(4 * PER_DAY)
        place.append(5 * PER_DAY)
    place.seal()
    everything = messages(place.queue, KEY)
    assert messages(place.replica, KEY) == everything
    limited = ("prune", place.queue, "--max-cycles", "1")
    assert killed_until_done(*limited, "--archive", place.archive, *with_key)
    assert killed_until_done("prune", place.replica, "--max-cycles", "3")
    assert (len(cycles(place.queue)), len(cycles(place.replica))) == (1, 3)
    place.verify()
    assert messages(place.queue, KEY) == everything[-PER_DAY:]
    place.check_proofs(proofs)

    expected = [(*it, n, word(n)) for n, it in enumerate(everything)]
    assert len(expected) == 5 * PER_DAY
    for it in place.both:
        assert place.table(spark, it) == expected
    assert showing(*(it.parent for it in place.both)) == []
    with open_any(tmp_path / "plain", **LAYOUT, **options) as plain, plain.appender() as appender:
        appender.write_map(fields(0))
    assert showing(tmp_path / "plain")  # what is looked for would be seen
