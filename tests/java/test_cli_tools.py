"""`quire read --java` and `quire write -d` against the programs of Java that they stand for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from java_peer import JavaPeer
from queues import START_MS

MAINS = "net.openhft.chronicle.queue"


def java(main: str, *arguments: str | Path) -> bytes:
    """Run a program of Java's and return its stdout."""
    (*jvm, _, _) = JavaPeer("2026.4").command("check")
    command = [*jvm, f"{MAINS}.{main}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True, timeout=300).stdout


@pytest.mark.parametrize(
    "options",
    [
        ["-x", "3"],
        ["-s", "-m", "2"],
        ["-l", "-k", "-x", "2"],
        ["-i", "price: 1.[12]", "-e", "size: [0-3]$"],
        ["-l", "-k", "-n", "{middle}"],
        ["-l", "-k", "-m", "3"],
        ["-l", "-m", "3", "-i", "size: [1-6]"],
    ],
)
def test_the_reader_prints_what_javas_prints(cli: Cli, tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "queue"
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=quire.ManualClock(START_MS)) as queue,
        queue.appender() as appender,
    ):
        indexes = [
            appender.write_map({"price": 1 + number / 10, "size": number}) for number in range(9)
        ]
    options = [it.format(middle=f"0x{indexes[4]:x}") for it in options]
    assert cli.ok("read", "--java", "-d", path, *options).raw == java(
        "ChronicleReaderMain", "-d", path, *options
    )


@pytest.mark.parametrize(
    "text",
    [
        "{\n  age: 19,\n  name: Henry\n}\n",
        "age: 42\nname: Percy\nshare: 0.5\nlive: true\n",
        "just a text\n",
        "7\n",
    ],
)
def test_the_writer_writes_the_bytes_of_javas(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(text)
    for method in ("doit", "a_method_whose_name_has_more_than_31_bytes"):
        ours, theirs = tmp_path / f"{method}-ours", tmp_path / f"{method}-theirs"
        cli.ok("write", "-d", ours, "-m", method, file)
        java("ChronicleWriterMain", "-d", theirs, "-m", method, file)
        found = [cli.ok("read", it, "--format", "hex", "--no-index").raw for it in (ours, theirs)]
        assert found[0] == found[1]


def test_histories_have_the_counts_and_times_of_javas_reader(cli: Cli, tmp_path: Path) -> None:
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        for number in range(1, 1_001):
            timings = [0, 1_000_000, 1_000_000 + 1_000 * number]
            history = {"sources": [1, number], "timings": timings}
            appender.write_map({"history": history, "buy": "EURUSD"})
    lines = java("ChronicleHistoryReaderMain", "-d", tmp_path / "queue").decode().splitlines()
    theirs = {line.split(":")[0]: line.split(":")[1].split() for line in lines if ":" in line}
    ran = cli.ok("history", tmp_path / "queue", "--unit", "ns", "--format", "json")
    ours = sorted(json.loads(ran.out), key=lambda it: str(it["source"]))  # as Java's columns
    assert [it["source"] for it in ours] == ["1", "startTo1"]
    assert [str(it["count"]) for it in ours] == theirs["count"]
    for name in ("50", "90", "99"):
        for row, value in zip(ours, theirs[name], strict=True):
            assert row[name] == pytest.approx(int(value), rel=0.05)  # Java counts in buckets
