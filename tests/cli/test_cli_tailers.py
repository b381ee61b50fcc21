"""`quire tailers`: lag in messages, bytes and seconds; positions moved, deleted and renamed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from cli_runs import Cli, run
from queues import DAY_MS, START_MS, snapshot


@pytest.fixture
def filled(path: Path, clock: quire.ManualClock) -> list[int]:
    """Two days of three messages a second apart; the tailer `risk` has read two of them."""
    indexes: list[int] = []
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
        queue.tailer("risk") as risk,
    ):
        for number in range(6):
            if number == 3:
                clock.advance(DAY_MS)
            indexes.append(appender.write_map({"n": number, "time": START_MS + 1000 * number}))
        for _ in range(2):
            risk.read_bytes()
        queue.tailer("none").close()
    return indexes


def listed(cli: Cli, path: Path, *options: str) -> dict[str, dict[str, Any]]:
    lines = cli.ok("tailers", path, "--format", "jsonl", *options).lines
    return {row.pop("name"): row for row in map(json.loads, lines)}


def next_number(path: Path, name: str) -> int | None:
    """What a tailer of this name reads next."""
    with quire.open(path) as queue, queue.tailer(name) as tailer:
        found = tailer.read_map()
        return None if found is None else found["n"]


def test_the_lag_of_each_tailer(cli: Cli, path: Path, filled: list[int]) -> None:
    before = snapshot(path)
    rows = listed(cli, path, "--time-field", "time")
    assert (rows["risk"]["messages"], rows["none"]["messages"]) == (4, 6)
    assert (rows["risk"]["seconds"], rows["none"]["seconds"]) == (3.0, 5.0)
    assert rows["risk"]["next_index"] == f"{filled[2]:#x}"
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        length = len(tailer.read_bytes() or b"")
    document = (length + 4 + 3) // 4 * 4
    assert (rows["risk"]["bytes"], rows["none"]["bytes"]) == (4 * document, 6 * document)
    assert listed(cli, path)["risk"]["seconds"] is None
    assert snapshot(path) == before
    assert run("tailers", path).lines[0].split() == [
        "name", "next_index", "messages", "bytes", "seconds",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("point", "number"),
    [("start", 0), ("end", None), ("3", 3), ("time", 4), ("past", None)],
)
def test_a_tailer_is_moved(
    cli: Cli, path: Path, filled: list[int], point: str, number: int | None
) -> None:
    points = {"3": filled[3], "time": f"{START_MS + 3500}ms", "past": filled[5] + 1}
    target = str(points.get(point, point))
    ran = cli.ok("tailers", path, "--move", "RISK" if point == "3" else "risk", target,
                 "--time-field", "time")  # fmt: skip
    assert ran.out.startswith("moved: name=")
    assert next_number(path, "risk") == number


def test_a_tailer_is_reset_renamed_and_deleted(cli: Cli, path: Path, filled: list[int]) -> None:
    assert cli.ok("tailers", path, "--rename", "risk", "limits").out == (
        "renamed: name=risk new=limits\n"
    )
    assert listed(cli, path)["limits"]["next_index"] == f"{filled[2]:#x}"
    reset = json.loads(cli.ok("tailers", path, "--reset", "limits", "--format", "json").out)
    first = f"{filled[0]:#x}"
    assert reset == [
        {"done": "moved", "name": "limits", "before": f"{filled[2]:#x}", "after": first}
    ]
    assert next_number(path, "limits") == 0
    cli.ok("tailers", path, "--delete", "Limits")
    assert [*listed(cli, path)] == ["none"]
    assert next_number(path, "limits") == 0
    assert quire.verify(path).ok


def test_event_times_of_an_encrypted_queue_need_its_key(
    cli: Cli, path: Path, tmp_path: Path
) -> None:
    (tmp_path / "key").write_bytes(b"k" * 32)
    with quire.open(path, key=b"k" * 32) as queue, queue.appender() as appender:
        for number in range(3):
            appender.write_map({"n": number, "time": START_MS + 1000 * number})
        queue.tailer("risk").close()
    timed, key = ("--time-field", "time"), ("--key-file", str(tmp_path / "key"))
    assert listed(cli, path)["risk"]["messages"] == 3
    assert listed(cli, path, *timed, *key)["risk"]["seconds"] == 2.0
    at = datetime.fromtimestamp(START_MS / 1000 + 1, UTC).isoformat()
    cli.ok("tailers", path, "--move", "risk", at, *timed, *key)
    assert listed(cli, path)["risk"]["messages"] == 2
    ran = cli("tailers", path, *timed)
    assert (ran.code, "--key-file" in ran.err) == (1, True)


@pytest.mark.parametrize(
    "change",
    [
        ("--move", "risk", "end"),
        ("--reset", "risk"),
        ("--delete", "risk"),
        ("--rename", "risk", "x"),
    ],
)
def test_a_tailer_in_use_is_refused(
    cli: Cli, path: Path, filled: list[int], change: tuple[str, ...]
) -> None:
    with quire.open(path) as queue, queue.tailer("risk"):
        ran = run("tailers", path, *change)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "in use" in ran.err
    assert listed(cli, path)["risk"]["next_index"] == f"{filled[2]:#x}"


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--reset", "nobody"], 1, "no tailer has this name: name=nobody"),
        (["--delete", "nobody"], 1, "no tailer has this name: name=nobody"),
        (["--rename", "nobody", "x"], 1, "no tailer has this name: name=nobody"),
        (["--rename", "risk", "NONE"], 2, "another tailer has this name"),
        (["--rename", "risk", "\N{SNOWMAN}"], 2, "printable Latin-1"),
        (["--move", "risk", "0x1"], 1, "no message has this index: index=0x1"),
        (["--move", "risk", "noon"], 2, "is neither an index"),
        (["--reset", "risk", "--delete", "risk"], 2, "give one of"),
    ],
)
@pytest.mark.usefixtures("filled")
def test_what_cannot_be_done_changes_nothing(
    cli: Cli, path: Path, options: list[str], code: int, text: str
) -> None:
    before = listed(cli, path)
    ran = cli("tailers", path, *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert text in ran.err
    assert listed(cli, path) == before


def test_a_quick_queue_has_none(cli: Cli, path: Path) -> None:
    with quire.quick_queue.open(path, page_bytes=4096) as queue:
        queue.appender().write_bytes(b"x")
    for options in ([], ["--delete", "risk"]):
        ran = cli("tailers", path, *options)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert "store nothing about their readers" in ran.err


@pytest.fixture
def days(path: Path, clock: quire.ManualClock) -> list[int]:
    """A Vanilla Chronicle, two days of three messages; the tailer `risk` has read two of them."""
    with (
        open_vanilla(path, clock=clock, data_block_bytes=4096) as queue,
        queue.appender() as appender,
        queue.tailer("risk") as risk,
    ):
        indexes = [appender.write_bytes(b"%d" % number) for number in range(3)]
        clock.advance(DAY_MS)
        indexes += [appender.write_bytes(b"%d" % number) for number in range(3, 6)]
        for _ in range(2):
            risk.read_bytes()
        queue.tailer("none").close()
    return indexes


def test_tailers_of_a_vanilla_chronicle(cli: Cli, path: Path, days: list[int]) -> None:
    before = snapshot(path)
    rows = listed(cli, path)
    nothing = {"bytes": None, "seconds": None}
    assert rows["none"] == {"next_index": "0x0", "messages": 6, **nothing}
    assert rows["risk"] == {"next_index": f"{days[2]:#x}", "messages": 4, **nothing}
    assert snapshot(path) == before
    with quire.open(path, read_only=True) as queue:
        assert queue.named_tailers() == [("none", 0), ("risk", days[2])]


@pytest.mark.parametrize(
    ("point", "number"), [("start", b"0"), ("end", None), ("4", b"4"), ("0", b"0")]
)
def test_a_tailer_of_a_vanilla_chronicle_is_moved(
    cli: Cli, path: Path, days: list[int], point: str, number: bytes | None
) -> None:
    target = hex(days[int(point)]) if point.isdecimal() else point
    cli.ok("tailers", path, "--move", "risk", target)
    with quire.open(path) as queue, queue.tailer("risk") as tailer:
        assert tailer.read_bytes() == number
    cli.ok("tailers", path, "--reset", "risk")
    with quire.open(path) as queue, queue.tailer("risk") as tailer:
        assert tailer.read_bytes() == b"0"


@pytest.mark.usefixtures("days")
def test_what_cannot_be_done_in_a_vanilla_chronicle(cli: Cli, path: Path) -> None:
    before = listed(cli, path)
    with quire.open(path) as queue, queue.tailer("risk"):
        ran = cli("tailers", path, "--reset", "risk")
        assert (ran.code, ran.err.count("\n")) == (1, 1)
        assert "risk" in ran.err
    for options, code, text in [
        (["--delete", "risk"], 2, "delete_tailer"),
        (["--rename", "risk", "other"], 2, "rename_tailer"),
        (["--move", "risk", "2024-01-15T10:30:00Z"], 2, "move_to_time"),
        (["--move", "risk", "0x1"], 1, "no message has this index: index=0x1"),
        (["--reset", "nobody"], 1, "no tailer has this name: name=nobody"),
    ]:
        ran = cli("tailers", path, *options)
        assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
        assert text in ran.err
    assert listed(cli, path) == before


def test_a_replicated_tailer_goes_with_what_stands_beside_it(path: Path) -> None:
    with quire.open(path) as queue:
        queue.tailer("replicated:copy").close()
        with pytest.raises(ValueError, match="replicated tailers are not renamed"):
            queue.rename_tailer("replicated:copy", "copy")
        assert queue.delete_tailer("replicated:copy")
        assert queue.named_tailers() == []
        assert not [key for key, _ in queue.table_entries() if key.startswith("index.")]
