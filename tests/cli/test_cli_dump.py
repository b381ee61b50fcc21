"""`quire dump --from --to`: a part of a queue, as the whole dump shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from converted import fill as fill_older
from damages import break_message, fill
from queues import DAY_MS, START_MS

DAYS, PER_DAY = 3, 12
FIRST_DAY = 0x4D19 << 32
POINTS = [(0, 3), (0, PER_DAY - 1), (1, 0), (1, 5), (2, 0), (2, PER_DAY - 1)]


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


@pytest.fixture
def days(tmp_path: Path) -> Path:
    fill(tmp_path / "days", DAYS, PER_DAY)
    return tmp_path / "days"


def index(day: int, number: int) -> int:
    return FIRST_DAY + (day << 32) + number


def parts(dump: str) -> dict[str, str]:
    """What a dump shows of each file."""
    found = [part.partition("\n") for part in dump.split("## ")[1:]]
    return {name: text for name, _, text in found}


def cut(whole: str, start: int, end: int | None) -> str:
    """A file's dump from one message up to before another, or to its end."""
    documents = re.split(r"(?m)^(?=# position: |\.\.\.$)", whole)
    messages = [place for place, it in enumerate(documents) if "--- !!data" in it]
    first = messages[start] if start else 0
    past = None if end is None else messages[end - 1] + 1
    return "".join(documents[first:past])


@pytest.mark.parametrize("start", POINTS)
def test_a_range_is_that_part_of_the_whole_dump(
    cli: Cli, days: Path, start: tuple[int, int]
) -> None:
    whole = parts(cli.ok("dump", days).out)
    files = [whole[name] for name in sorted(whole) if name.endswith(".cq4")]
    for end in (it for it in POINTS if it > start):
        points = ("--from", f"{index(*start):#x}", "--to", f"{index(*end):#x}")
        expected = [
            cut(
                text,
                start[1] if day == start[0] else 0,
                end[1] if day == end[0] else None,
            )
            for day, text in enumerate(files)
            if start[0] <= day <= end[0] and (day, 0) != end
        ]
        assert [*parts(cli.ok("dump", days, *points).out).values()] == expected, (start, end)


def test_a_side_without_a_point_is_open(cli: Cli, days: Path) -> None:
    whole = cli.ok("dump", days).out
    files = whole[: whole.index("## metadata.cq4t")]
    assert cli.ok("dump", days, "--from", f"{index(0, 0):#x}").out == files
    assert cli.ok("dump", days, "--to", f"{index(DAYS, 0):#x}").out == files
    assert cli.ok("dump", days, "--to", f"{index(0, 0):#x}").out == ""


def test_times_are_points_of_a_dump(cli: Cli, days: Path) -> None:
    by_index = cli.ok("dump", days, "--from", f"{index(1, 0):#x}", "--to", f"{index(2, 0):#x}").out
    assert cli.ok("dump", days, "--from", "2024-01-16", "--to", "2024-01-17").out == by_index
    assert cli.ok("dump", days, "--from", "2024-02-01").out == ""
    ran = cli("dump", days, "--from", "2024-01-16T10:30")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot seek inside a cycle" in ran.err


def test_a_field_of_the_messages_gives_their_time(cli: Cli, tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(tmp_path / "timed", clock=clock) as queue, queue.appender() as appender:
        for number in range(10):
            appender.write_map({"at": START_MS + number * 1000, "n": number})
    times = ("--from", f"{START_MS + 2500}ms", "--to", f"{START_MS + 5000}ms")
    shown = cli.ok("dump", tmp_path / "timed", *times, "--time-field", "at").out
    assert re.findall(r"(?m)^n: (\d+)$", shown) == ["3", "4"]


def test_of_one_file_only_its_own_messages_are_shown(cli: Cli, days: Path) -> None:
    _, file, _ = sorted(days.glob("*.cq4"))
    whole = cli.ok("dump", file).out
    assert cli.ok("dump", file, "--from", f"{index(1, 4):#x}").out.endswith(
        whole[whole.index("header: 4\n") :]
    )
    assert cli.ok("dump", file, "--to", f"{index(1, 0):#x}").out == ""
    assert cli.ok("dump", file, "--to", f"{index(2, 3):#x}").out == whole
    for verb in ("dump", "read"):
        ran = cli(verb, file, "--from", f"{index(0, 3):#x}")
        assert (ran.code, ran.out) == (1, ""), verb
        assert "no message has this index" in ran.err


def test_a_compressed_file_is_limited_too(cli: Cli, days: Path) -> None:
    arguments = ("--from", f"{index(0, 5):#x}", "--to", f"{index(0, 7):#x}")
    plain = cli.ok("dump", days, *arguments).out
    quire.prune(
        days, max_cycles=1, action="compress", clock=quire.ManualClock(START_MS + 9 * DAY_MS)
    )
    assert [*days.glob("20240115*.zst")]
    compressed = cli.ok("dump", days, *arguments).out
    assert compressed.partition("\n")[2] == plain.partition("\n")[2]


def test_damage_outside_the_range_does_no_harm(cli: Cli, days: Path) -> None:
    first, second, _ = sorted(days.glob("*.cq4"))
    wanted = ("--from", f"{index(1, 0):#x}", "--to", f"{index(1, 6):#x}")
    before = cli.ok("dump", days, *wanted).out
    first.write_bytes(b"rubbish!" * 512)
    break_message(second, 9)
    assert cli.ok("dump", days, *wanted).out == before
    ran = cli("dump", days, "--from", f"{index(1, 8):#x}", "--to", f"{index(1, 11):#x}")
    assert "n: 20\n" in ran.out
    assert "n: 21\n" not in ran.out


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_messages_of_the_older_formats_have_indexes_too(
    cli: Cli, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "old"
    fill_older(path, kind, [[b"one", b"two", b"three"], [b"four", b"five"]])  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        indexes = [it.index for it in tailer]
    blocks = [it for it in cli.ok("dump", path).lines if not it.startswith("## ")]
    for first in range(5):
        for past in range(first, 5):
            points = ("--from", f"{indexes[first]:#x}", "--to", f"{indexes[past]:#x}")
            shown = cli.ok("dump", path, *points).lines
            assert [it for it in shown if not it.startswith("## ")] == blocks[2 * first : 2 * past]
    after = indexes[-1] + 16
    ran = cli("dump", path, "--from", f"{after:#x}")
    assert (ran.code, ran.out) == (1, "")
    assert f"start={after:#x}" in ran.err


def test_a_table_and_a_quick_queue_have_no_times(cli: Cli, days: Path, tmp_path: Path) -> None:
    fill_older(tmp_path / "quick", "quick-queue", [[b"one"]])
    for path in (days / "metadata.cq4t", tmp_path / "quick"):
        ran = cli("dump", path, "--from", "2024-01-15")
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert str(path) in ran.err
