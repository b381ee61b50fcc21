"""`quire stat` and `quire dump`: what a queue is and holds, whatever else is done to it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import COMMAND, ENVIRONMENT, Cli, run
from java_peer import JavaPeer
from parameters import some
from paths import GOLDEN
from queues import DAY_MS, UNLOCKED, WRITE_LOCK, exit_code, fork, poke, snapshot


def stat_of(cli: Cli, path: Path) -> dict[str, Any]:
    """The facts; the same run as text must be clean, too."""
    assert cli.ok("stat", path).lines[0].split() == ["path", str(path)]
    facts: dict[str, Any] = json.loads(cli.ok("stat", path, "--json").out)
    return facts


def test_a_queue_of_three_days_is_reported(
    cli: Cli, path: Path, clock: quire.ManualClock, appender: quire.JournalAppender
) -> None:
    indexes: list[int] = []
    for count in (4, 3, 5):
        indexes += [appender.write_text("x" * 10) for _ in range(count)]
        clock.advance(DAY_MS)

    facts = stat_of(cli, path)

    assert facts["roll_cycle"] == "TEST4_DAILY"
    assert (facts["wire_type"], facts["source_id"], facts["epoch_ms"]) == ("BINARY_LIGHT", 0, 0)
    assert facts["messages"] == 12
    assert facts["first_index"] == f"{indexes[0]:#x}"
    assert facts["last_index"] == f"{indexes[-1]:#x}"
    files = [(it["name"], it["messages"], it["state"], it["from"]) for it in facts["files"]]
    assert files == [
        ("20240115T4.cq4", 4, "eof", "2024-01-15T00:00:00Z"),
        ("20240116T4.cq4", 3, "eof", "2024-01-16T00:00:00Z"),
        ("20240117T4.cq4", 5, "open", "2024-01-17T00:00:00Z"),
    ]
    assert [it["mean_per_second"] for it in facts["files"]] == [4 / 86_400, 3 / 86_400, None]
    assert {it["per_second"] for it in facts["files"]} == {None}
    for it in facts["files"]:
        found = (path / it["name"]).stat()
        assert (it["size"], it["on_disk"]) == (found.st_size, found.st_blocks * 512)
        assert 784 < it["used"] < it["size"]
    assert facts["on_disk"] == sum(it["on_disk"] for it in facts["files"])
    assert facts["locks"] == {"chronicle.write.lock": None, "chronicle.append.lock": None}


def test_a_tailers_lag_is_exact(
    cli: Cli,
    path: Path,
    queue: quire.JournalQueue,
    clock: quire.ManualClock,
    appender: quire.JournalAppender,
) -> None:
    with queue.tailer("none"), queue.tailer("some") as some, queue.tailer("all") as everything:
        for count in (4, 3, 5):
            for _ in range(count):
                appender.write_text("x")
            clock.advance(DAY_MS)
        for _ in range(5):
            some.read_text()
        while everything.read_text() is not None:
            pass
        some.commit()
        everything.commit()
        lags = {it["name"]: it["lag"] for it in stat_of(cli, path)["tailers"]}
    assert lags == {"none": 12, "some": 7, "all": 0}


def test_tailers_of_javas_are_told_and_what_stands_beside_them_is_not(cli: Cli) -> None:
    facts = stat_of(cli, GOLDEN / "java-5.27ea11/h_named_tailers")

    lags = {it["name"]: it["lag"] for it in facts["tailers"]}
    assert lags == {
        "none": 40,
        "one": 39,
        "ten": 30,
        "twenty": 20,
        "thirty": 10,
        "all": 0,
        "atEnd": 0,
        "moved": 35,
        "startAfterRead": 40,
        "replicated:rep": 39,
    }
    assert facts["locks"]["index.replicated:rep.lock"] is None


@pytest.mark.parametrize(
    "case",
    some(sorted(GOLDEN.glob("java-*/*/")), keep=range(0, 1000, 4)),
    ids=lambda it: "-".join(it.parts[-2:]),
)
def test_every_queue_of_javas_is_reported_read_and_dumped(cli: Cli, case: Path) -> None:
    facts = stat_of(cli, case)
    listed = [json.loads(line) for line in (case / "list.jsonl").read_text("utf-8").splitlines()]
    assert facts["messages"] == sum("index" in line for line in listed)
    dumped = cli.ok("dump", case).out
    assert dumped.count("## ") >= len(facts["files"]) + 1
    lines = cli.ok("read", case, "--format", "jsonl").lines
    assert len([json.loads(line) for line in lines]) == facts["messages"]
    by_java = case / "dump.txt"
    if by_java.exists() and case.name != "b_scalars":  # see docs/compatibility.md
        assert dumped == by_java.read_text("utf-8")


def test_the_rate_is_reported_by_the_history_of_the_messages(cli: Cli) -> None:
    (file,) = stat_of(cli, GOLDEN / "java-5.27ea11/c_methods_history")["files"]
    assert file["messages"] > 10
    # The last one was written 25 us after the first, by a clock that a test made.
    assert file["per_second"] == pytest.approx(24 / 25e-6)


def test_the_text_says_what_the_object_says(
    cli: Cli, path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for _ in range(1_234):
        appender.write_text("x")
    queue.tailer("late").close()

    lines = [line.split(maxsplit=2) for line in cli.ok("stat", path).lines if line]

    assert ["messages", "1234"] in lines
    assert ["write", "lock", "free"] in lines
    assert ["late", "0x0", "1234"] in lines
    assert any(line[:2] == ["20240115T4.cq4", "2024-01-15T00:00:00Z"] for line in lines)
    assert any(line[0] == "listing.modCount" for line in lines)


def test_the_holder_of_a_lock_is_reported_and_not_waited_for(
    cli: Cli, path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with appender.writing_document() as document:
        document.write_bytes(b"x")
        ran = run("stat", path)
        assert (ran.code, ran.err) == (0, "")  # who waits for a living holder ends with an error
        held = f"write lock   held by process {os.getpid()} since "
        since = stat_of(cli, path)["locks"][WRITE_LOCK]["since"]
        assert f"{held}{since}\n" in ran.out
        holder = queue.write_lock.holder
        assert holder is not None
        assert datetime.fromisoformat(since) == holder.since
    dead = fork(lambda: None)
    exit_code(dead)
    poke(path, WRITE_LOCK, dead)
    assert f"write lock   held by process {dead}, which is dead\n" in cli.ok("stat", path).out
    assert stat_of(cli, path)["locks"][WRITE_LOCK] == {
        "pid": dead,
        "lives": False,
        "since": None,
    }
    poke(path, WRITE_LOCK, UNLOCKED)


def test_looking_changes_nothing(cli: Cli, path: Path, appender: quire.JournalAppender) -> None:
    appender.write_text("x")
    before = snapshot(path)
    stat_of(cli, path)
    cli.ok("dump", path)
    assert snapshot(path) == before


def test_odd_queues_are_told(
    cli: Cli, path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    empty = stat_of(cli, path)
    assert (empty["messages"], empty["first_index"], empty["files"]) == (0, None, [])

    appender.write_text("x")
    file = Path(queue.file_for_cycle(queue.cycles[0]))
    (path / "20240116T4.cq4").touch()
    states = {it["name"]: it["state"] for it in stat_of(cli, path)["files"]}
    assert states == {"20240115T4.cq4": "open", "20240116T4.cq4": "not ready"}

    (tmp_path / "alone").mkdir()
    alone = Path(shutil.copy(file, tmp_path / "alone"))
    assert stat_of(cli, alone)["messages"] == 1
    assert stat_of(cli, alone.parent)["keys"] == {}


def test_a_damaged_file_is_named_and_the_others_are_told(
    cli: Cli,
    path: Path,
    queue: quire.JournalQueue,
    clock: quire.ManualClock,
    appender: quire.JournalAppender,
) -> None:
    for _ in range(3):
        appender.write_text("x")
        clock.advance(DAY_MS)
    last = queue.last_index
    file = Path(queue.file_for_cycle(queue.cycles[1]))
    with file.open("r+b") as opened:
        opened.write(b"rubbish!")

    ran = cli("stat", path, "--json")

    assert ran.code == 1
    assert ran.err.startswith("quire: corrupt file: not a roll file ")
    assert str(file) in ran.err
    facts = json.loads(ran.out)
    assert [it["state"] for it in facts["files"]] == ["eof", "damaged", "open"]
    assert (facts["messages"], facts["last_index"]) == (2, f"{last:#x}")


@pytest.mark.parametrize("verb", ["stat", "dump", "read", "write"])
def test_what_the_system_refuses_is_reported_with_its_path(
    cli: Cli, verb: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "cannot open: Permission denied", path / "metadata.cq4t")

    monkeypatch.setattr(quire, "open", refused)
    monkeypatch.setattr("quire.cli.verbs.dump.Dump", refused)
    path.mkdir()
    (path / "metadata.cq4t").touch()

    ran = cli(verb, path)

    assert ran.code == 1
    expected = f"cannot open: Permission denied: path={path / 'metadata.cq4t'}\n"
    assert ran.err == f"quire: {expected}"


@pytest.mark.parametrize("verb", ["stat", "dump", "read"])
def test_a_path_without_a_queue_is_reported_in_one_line(
    cli: Cli, verb: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no queue\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / name for name in ("no", "file", "loop", "empty")):
        ran = cli(verb, path)
        assert ran.code == 1, path
        assert str(path) in ran.err
        assert ran.err.startswith("quire: ")
        assert ran.err.count("\n") == 1


def test_a_dump_is_that_of_the_library(
    cli: Cli,
    path: Path,
    queue: quire.JournalQueue,
    clock: quire.ManualClock,
    appender: quire.JournalAppender,
) -> None:
    for _ in range(2):
        appender.write_text("x")
        clock.advance(DAY_MS)
    dumped = cli.ok("dump", path).out

    *files, table = [part for part in dumped.split("## ") if part]
    assert sorted(queue.dump().split("## ")) == sorted(dumped.split("## "))
    name, _, rest = files[0].partition("\n")
    assert cli.ok("dump", path / name).out == rest
    assert (
        cli.ok("dump", path / name, path / "metadata.cq4t").out == rest + table.partition("\n")[2]
    )


def test_a_dump_goes_on_after_a_damaged_file(
    cli: Cli,
    path: Path,
    queue: quire.JournalQueue,
    clock: quire.ManualClock,
    appender: quire.JournalAppender,
) -> None:
    for _ in range(2):
        appender.write_text("x")
        clock.advance(DAY_MS)
    first = Path(queue.file_for_cycle(queue.cycles[0]))
    whole = cli.ok("dump", path).out
    with first.open("r+b") as file:
        file.write(b"rubbish!")

    ran = cli("dump", path)

    assert ran.code == 1
    assert "not a roll file" in ran.err
    assert str(first) in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out.startswith(f"## {first.name}\n# ")
    assert ran.out.endswith(whole[whole.index("## ", 1) :])


def test_a_dump_into_a_closed_pipe_ends_quietly(
    path: Path, appender: quire.JournalAppender
) -> None:
    for _ in range(2_000):
        appender.write_bytes(bytes(100))
    with subprocess.Popen(
        [*COMMAND, "dump", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"## 20240115T4.cq4\n"
        process.stdout.close()
        assert process.wait(300) == 1
        assert process.stderr.read() == b""


@pytest.mark.java
def test_a_queue_is_reported_while_java_holds_its_lock(cli: Cli, path: Path) -> None:
    peer = JavaPeer()
    with peer.start("produce", dir=path, count=5, hold_open_document=True) as java:
        java.read_until("HOLDING")
        facts = stat_of(cli, path)

        assert facts["messages"] == 5
        held = {"pid": java.pid, "lives": True, "since": None}  # Java leaves no record
        assert facts["locks"][WRITE_LOCK] == held
        assert cli.ok("read", path, "--format", "hex").raw.count(b"\n") == 5
        java.kill()
    assert stat_of(cli, path)["locks"][WRITE_LOCK] == {**held, "lives": False}
