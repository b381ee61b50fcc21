"""`quire stat` and `quire dump` of Vanilla Chronicles and Quick-Queues."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quick_golden
import quire
import vanilla_golden
from cli_runs import Cli, run
from converted import QUEUES, Into, fill, messages
from indexed_reference import written
from queues import snapshot

DAYS = [[b"one", b"two\x1b"], [b"three"]]


@pytest.fixture
def vanilla(tmp_path: Path) -> Path:
    fill(tmp_path / "vanilla", "vanilla", DAYS)
    return tmp_path / "vanilla"


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    fill(tmp_path / "quick", "quick-queue", DAYS)
    return tmp_path / "quick"


def test_stat_of_a_vanilla_chronicle(cli: Cli, vanilla: Path) -> None:
    before, everything = snapshot(vanilla), messages(vanilla)
    facts = json.loads(cli.ok("stat", vanilla, "--json").out)
    assert facts["format"] == "vanilla"
    assert (facts["cycle_format"], facts["cycle_length_ms"]) == ("yyyyMMdd", 86_400_000)
    assert facts["messages"] == 3
    assert facts["first_index"] == f"{everything[0][0]:#x}"
    assert facts["last_index"] == f"{everything[-1][0]:#x}"
    names = ("name", "from", "messages", "threads", "wrong")
    assert [[it[name] for name in names] for it in facts["files"]] == [
        ["20240115", "2024-01-15T00:00:00Z", 2, 1, None],
        ["20240117", "2024-01-17T00:00:00Z", 1, 1, None],
    ]
    files = [*vanilla.glob("*/*")]
    assert facts["size"] == sum(file.stat().st_size for file in files)
    assert facts["on_disk"] == sum(512 * file.stat().st_blocks for file in files)
    lines = cli.ok("stat", vanilla).lines
    assert lines[1].split() == ["format", "vanilla"]
    assert lines[-1].startswith("20240117  2024-01-17T00:00:00Z  1 ")
    assert snapshot(vanilla) == before


def test_stat_of_named_tailers_of_a_vanilla_chronicle(cli: Cli, vanilla: Path) -> None:
    with quire.open(vanilla, format="vanilla") as queue, queue.tailer("risk") as risk:
        risk.read_many(2)
        risk.commit()
        (_, index), *_ = queue.named_tailers()
    facts = json.loads(cli.ok("stat", vanilla, "--json").out)
    assert facts["tailers"] == [{"name": "risk", "index": f"{index:#x}", "lag": 1}]
    lines = cli.ok("stat", vanilla).lines
    assert [line.split() for line in lines[-2:]] == [
        ["tailer", "next", "index", "lag"],
        ["risk", f"{index:#x}", "1"],
    ]


def test_stat_of_a_quick_queue(cli: Cli, quick: Path) -> None:
    before = snapshot(quick)
    facts = json.loads(cli.ok("stat", quick, "--json").out)
    assert (facts["format"], facts["form"], facts["page_bytes"]) == ("quick-queue", "single", 16384)
    assert (facts["messages"], facts["first_index"], facts["last_index"]) == (3, "0x0", "0x20")
    assert [(it["name"], it["messages"]) for it in facts["files"]] == [("0.qx", 3), ("0.qd", None)]
    assert cli.ok("stat", quick).lines[2].split() == ["writers", "one"]
    assert snapshot(quick) == before


def test_stat_of_named_producers(cli: Cli, tmp_path: Path) -> None:
    with quire.quick_queue.open(tmp_path / "book", page_bytes=4096) as queue:
        for name in ("AB1", "AA0"):
            with queue.appender(name) as appender:
                appender.write_many([b"x" * 100] * 200)
    facts = json.loads(cli.ok("stat", tmp_path / "book", "--json").out)
    assert (facts["form"], facts["producers"], facts["messages"]) == (
        "shared",
        ["AA0", "AB1"],
        400,
    )
    index = [(it["name"], it["messages"]) for it in facts["files"] if it["messages"] is not None]
    assert index == [("0.qmx", 256), ("1.qmx", 144)]
    data = [it["producer"] for it in facts["files"] if it["messages"] is None]
    assert data == ["AA0"] * 5 + ["AB1"] * 5


def test_what_java_wrote_is_described(cli: Cli, tmp_path: Path) -> None:
    quick_golden.unpack(tmp_path)
    for name in vanilla_golden.NAMES:
        path = vanilla_golden.unpack(name, tmp_path)
        facts = json.loads(cli.ok("stat", path, "--json").out)
        assert facts["messages"] == vanilla_golden.listing(name)["count"]
        assert cli.ok("dump", path).out.count("# index: ") == facts["messages"]
    for name in quick_golden.WITH_FILES:
        facts = json.loads(cli.ok("stat", tmp_path / name, "--json").out)
        listed = quick_golden.listing(tmp_path, name).delivered()
        assert facts["messages"] == len(listed)
        assert cli.ok("dump", tmp_path / name).out.count("# index: ") == len(listed)


def test_dump_shows_each_message(cli: Cli, vanilla: Path, quick: Path) -> None:
    (first, _), (second, _), (third, _) = messages(vanilla)
    digits = "00000000  74 77 6f 1b                                      two·"
    assert cli.ok("dump", vanilla).lines == [
        "## 20240115",
        f"# index: {first:#x}, length: 3",
        "one",
        f"# index: {second:#x}, length: 4",
        digits,
        "## 20240117",
        f"# index: {third:#x}, length: 5",
        "three",
    ]
    assert run("dump", quick).out.splitlines() == [
        "## 0.qx",
        "# index: 0x0, length: 3",
        "one",
        "# index: 0x10, length: 4",
        digits,
        "# index: 0x20, length: 5",
        "three",
    ]


def test_a_damaged_entry_is_shown_and_passed_over(cli: Cli, vanilla: Path) -> None:
    (first, _), *_ = messages(vanilla)
    with (vanilla / "20240115/index-0").open("r+b") as file:
        file.write(b"\xff" * 7)
    ran = cli("dump", vanilla)
    assert ran.code == 1
    assert ran.lines[1].startswith(f"# index: {first:#x}, ")
    assert ran.lines[2:4] == [f"# index: {first + 1:#x}, length: 4", ran.lines[3]]
    assert ran.lines[-1] == "three"
    assert str(vanilla / "20240115") in ran.err


def test_files_of_older_formats_are_not_shown_alone(cli: Cli, vanilla: Path, quick: Path) -> None:
    for file in (vanilla / "20240115/index-0", vanilla / "20240115/data-1-0", quick / "0.qx"):
        ran = cli("dump", file)
        assert (ran.code, ran.out) == (2, "")
        assert "give the directory of the queue" in ran.err


@pytest.mark.parametrize("kind", QUEUES)
def test_json_of_all_formats_has_what_they_share(cli: Cli, tmp_path: Path, kind: Into) -> None:
    fill(tmp_path / kind, kind, DAYS)
    facts = json.loads(cli.ok("stat", tmp_path / kind, "--json").out)
    shared = {"path", "format", "messages", "first_index", "last_index", "size", "on_disk", "files"}
    assert shared <= facts.keys()
    assert facts["format"] == kind
    assert {"name", "messages", "size", "on_disk", "wrong"} <= facts["files"][0].keys()


def test_stat_and_dump_of_an_indexed_chronicle(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "trades"
    written(path, [b"one", b"two"])
    before = snapshot(tmp_path)
    facts = json.loads(cli.ok("stat", path, "--json").out)
    assert (facts["format"], facts["messages"]) == ("indexed", 2)
    assert (facts["first_index"], facts["last_index"]) == ("0x0", "0x1")
    files = [(it["name"], it["messages"]) for it in facts["files"]]
    assert files == [("trades.index", 2), ("trades.data", None)]
    assert cli.ok("dump", path).lines == [
        "## trades.index",
        "# index: 0x0, length: 3",
        "one",
        "# index: 0x1, length: 3",
        "two",
    ]
    assert snapshot(tmp_path) == before
    assert cli.ok("replay", path).out == cli.ok("read", path).out
