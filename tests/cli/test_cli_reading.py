"""`quire read` and `tail` on every format and kind of path, with functions of the caller."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

import quire
from cli_runs import COMMAND, ENVIRONMENT, Cli
from indexed_reference import written
from queues import DAY_MS, START_MS

FUNCTIONS = """
from dataclasses import dataclass
import quire

@quire.message
@dataclass
class Order:
    symbol: str
    size: quire.types.int32

class Market:
    def buy(self, order: Order) -> None: ...
    def halt(self, symbol: str) -> None: ...

def is_third(excerpt):
    return excerpt.data[-1:] == b"3"

class Until:
    def __init__(self, text):
        self.text = text
    def __call__(self, excerpt):
        return excerpt.data.endswith(self.text.encode())

class Seek:
    def __init__(self, text):
        self.wanted = int(text)
    def __call__(self, excerpt):
        return int(excerpt.data[1:]) - self.wanted
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a module of functions."""
    found = tmp_path_factory.mktemp("functions")
    (found / "reading_functions.py").write_text(FUNCTIONS)
    return found


@pytest.fixture
def functions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the working directory."""
    monkeypatch.chdir(folder)
    return "reading_functions"


def filled(path: Path, form: str, clock: quire.ManualClock, days: int = 3, each: int = 4) -> None:
    """Write `m0`, `m1`, ... on some days; a Quick-Queue has none."""
    options: dict[str, Any] = {"chronicle": {"roll_cycle": "TEST4_DAILY"}, "vanilla": {}}
    given = {**options[form], "clock": clock} if form in options else {}
    made: Any = cast("Any", quire.open)(path, format=form, **given)
    with made as queue, queue.appender() as appender:
        for number in range(days * each):
            appender.write_bytes(b"m%d" % number)
            if number % each == each - 1:
                clock.advance(DAY_MS)


@pytest.fixture(params=["chronicle", "vanilla", "quick-queue"])
def form(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def any_path(tmp_path: Path, form: str) -> Path:
    path = tmp_path / "any"
    filled(path, form, quire.ManualClock(START_MS))
    return path


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], range(12)),
        (["--last", "3"], [9, 10, 11]),
        (["--last", "0"], []),
        (["--count", "2"], [0, 1]),
        (["--reverse"], range(11, -1, -1)),
        (["--reverse", "--last", "2"], [11, 10]),
        (["--include", "m1", "--last", "2"], [10, 11]),
        (["--exclude", "m1"], [0, *range(2, 10)]),
    ],
)
def test_every_format_is_read_alike(
    cli: Cli, any_path: Path, options: list[str], shown: list[int]
) -> None:
    lines = cli.ok("read", any_path, "--format", "text", "--no-index", *options).lines
    assert lines == [f"m{number}" for number in shown]


def test_indexes_of_every_format_are_bounds(cli: Cli, any_path: Path) -> None:
    lines = cli.ok("read", any_path, "--format", "text").lines
    indexes = [line.partition(":")[0] for line in lines]
    ran = cli.ok("read", any_path, "--format", "text", "--from", indexes[5], "--to", indexes[7])
    assert ran.lines == lines[5:7]
    back = cli.ok("read", any_path, "--format", "text", "--reverse", "--from", indexes[10])
    assert back.lines == lines[:9:-1]


def test_tail_shows_the_last_of_every_format(cli: Cli, any_path: Path) -> None:
    options = ["--format", "text", "--no-index", "--no-follow"]
    assert cli.ok("tail", any_path, *options, "-n", "2").lines == ["m10", "m11"]
    assert len(cli.ok("tail", any_path, *options).lines) == 10


def test_tail_shows_a_range_of_every_format(cli: Cli, any_path: Path) -> None:
    options = ["--format", "text", "--no-follow"]
    indexes = [line.split()[0] for line in cli.ok("read", any_path, "--format", "text").lines]
    shown = cli.ok("tail", any_path, *options, "--no-index", "--from", indexes[1]).lines
    assert shown == [f"m{number}" for number in range(1, 12)]
    shown = cli.ok("tail", any_path, *options, "--no-index", "-n", "2", "--to", indexes[5]).lines
    assert shown == ["m3", "m4"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--to", "0x1"], "--to needs --no-follow"),
        (["--from", "0x1", "-n", "3"], "--from and --last do not go together"),
        (["--from", "yesterday"], "'yesterday'"),
    ],
)
def test_tail_refuses_a_wrong_range(
    cli: Cli, tmp_path: Path, options: list[str], reason: str
) -> None:
    ran = cli("tail", tmp_path, *options)
    assert (ran.code, reason in ran.err) == (2, True), ran.err


def test_tail_follows_until_it_is_interrupted(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_text("before")
        command = [*COMMAND, "tail", str(path), "--format", "text", "--no-index"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"before\n"
            appender.write_text("after")
            assert process.stdout.readline() == b"after\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 130


def test_a_field_that_is_called_index_is_left_as_it_is(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        with quire.open(tmp_path / name) as queue, queue.appender() as appender:
            appender.write_map({"index": 7})
    command = ("read", tmp_path, "--format", "jsonl")
    assert cli.ok(*command, "--no-index").lines == ['{"index":7}', '{"index":7}']
    first, _ = map(json.loads, cli.ok(*command).lines)
    assert (first["queue"], first["message"]) == ("a", {"index": 7})
    assert cli.ok(*command, "--where", f"index = {first['index']}").lines
    ran = cli("read", tmp_path / "a", "--format", "csv")
    assert (ran.code, "names index or _error" in ran.err) == (1, True)


def test_a_directory_of_queues_is_read_one_after_the_other(cli: Cli, tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    for name, form in (("a/one", "chronicle"), ("b", "vanilla"), ("c", "quick-queue")):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        filled(tmp_path / "all" / name, form, clock, 1, 2)
    root = tmp_path / "all"
    assert cli.ok("read", root, "--format", "text", "--no-index").lines == [
        line for name in ("a/one", "b", "c") for line in (f"==> {name} <==", "m0", "m1")
    ]
    lines = [json.loads(line) for line in cli.ok("read", root, "--format", "jsonl").lines]
    assert [line["queue"] for line in lines] == ["a/one", "a/one", "b", "b", "c", "c"]
    assert len(cli.ok("tail", root, "-n", "1", "--format", "text", "--no-follow").lines) == 6
    assert cli("read", root, "--named", "t").code == 2


def test_one_cycle_of_an_older_format_is_read_alone(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "vanilla"
    filled(path, "vanilla", quire.ManualClock(START_MS))
    with quire.vanilla.VanillaQueue(path, read_only=True) as queue:
        folder = Path(queue.directory_for_cycle(queue.cycles[1]))
    options = ["--format", "text", "--no-index"]
    expected = ["m4", "m5", "m6", "m7"]
    assert cli.ok("read", folder, *options).lines == expected
    index = next(it for it in folder.iterdir() if it.name.startswith("index-"))
    assert cli.ok("read", index, *options).lines == expected
    filled(tmp_path / "quick", "quick-queue", quire.ManualClock(START_MS))
    assert len(cli.ok("read", tmp_path / "quick" / "0.qx", *options).lines) == 12


def test_an_indexed_chronicle_is_read(cli: Cli, tmp_path: Path) -> None:
    written(tmp_path / "trades", [b"m%d" % number for number in range(12)])
    options = ["--format", "text", "--no-index"]
    for name in ("trades", "trades.index"):
        lines = cli.ok("read", tmp_path / name, *options).lines
        assert lines == [f"m{number}" for number in range(12)]
    assert cli.ok("read", tmp_path / "trades", *options, "--last", "2").lines == ["m10", "m11"]
    backward = cli.ok("read", tmp_path / "trades", *options, "--reverse", "--count", "2").lines
    assert backward == ["m11", "m10"]
    ran = cli("read", tmp_path / "trades", *options, "--where", "size > 1")
    assert (ran.code, ran.out) == (0, "")
    assert "no message has the field: field=size messages=12" in ran.err
    ran = cli("read", tmp_path / "trades", "--from", "2024-01-15")
    assert (ran.code, ran.err.count("\n"), "no cycles" in ran.err) == (2, 1, True)


def test_a_copied_day_is_read(cli: Cli, queue: quire.JournalQueue, tmp_path: Path) -> None:
    with queue.appender() as appender:
        appender.write_bytes(b"m0")
    file = Path(queue.file_for_cycle(queue.cycles[0]))
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / file.name).write_bytes(file.read_bytes())
    assert cli.ok("read", tmp_path / "day", "--format", "text", "--no-index").lines == ["m0"]


def test_a_limiter_ends_the_output_before_its_message(
    cli: Cli, any_path: Path, functions: str
) -> None:
    options = ["--format", "text", "--no-index", "--limiter"]
    assert cli.ok("read", any_path, *options, f"{functions}:is_third").lines == ["m0", "m1", "m2"]
    until = [f"{functions}:Until", "--limiter-arg", "m1"]
    assert cli.ok("read", any_path, *options, *until).lines == ["m0"]
    last = ["--last", "11"]
    assert cli.ok("read", any_path, *last, *options, f"{functions}:is_third").lines == ["m1", "m2"]


@pytest.mark.parametrize("wanted", [0, 3, 4, 7, 8, 11, 12])
def test_a_comparator_says_where_to_start(
    cli: Cli, any_path: Path, functions: str, wanted: int
) -> None:
    search = ["--search", f"{functions}:Seek", "--search-arg", str(wanted)]
    lines = cli.ok("read", any_path, "--format", "text", "--no-index", *search).lines
    assert lines == [f"m{number}" for number in range(wanted, 12)]


def test_an_interface_decodes_its_calls_alone(
    cli: Cli, path: Path, functions: str, queue: quire.JournalQueue
) -> None:
    with queue.appender() as appender:
        appender.write_yaml("buy: {symbol: EURUSD, size: 3}")
        appender.write_text("no call")
        appender.write_yaml("halt: EURUSD")
    options = ["--interface", f"{functions}:Market", "--format", "jsonl", "--no-index"]
    assert [json.loads(line) for line in cli.ok("read", path, *options).lines] == [
        {"buy": {"symbol": "EURUSD", "size": 3}},
        {"halt": "EURUSD"},
    ]
    found = cli.ok("read", path, *options, "--where", "buy.size = 3", "--columns", "buy.symbol")
    assert json.loads(found.out) == {"buy.symbol": "EURUSD"}


def test_an_interface_makes_the_arguments_that_are_written(
    cli: Cli, tmp_path: Path, functions: str
) -> None:
    order = tmp_path / "order.yaml"
    order.write_text("symbol: EURUSD\nsize: 3\n---\nsymbol: USDJPY\nsize: 4\n")
    path = tmp_path / "typed"
    interface = ["--interface", f"{functions}:Market"]
    assert (
        cli.ok("write", "-d", path, "-m", "buy", *interface, order).lines[0].startswith("written=2")
    )
    lines = cli.ok("read", path, "--format", "hex", "--no-index").lines
    # As a method writer writes an int32: in one byte, with the name of an event.
    assert lines[0].startswith("b903627579")
    assert "c473697a65a103" in lines[0]
    wrong = cli("write", path, "-m", "sell", *interface, order)
    assert (wrong.code, "method=sell known=buy, halt" in wrong.err) == (2, True)
    order.write_text("symbol: EURUSD\nsize: many\n")
    wrong = cli("write", path, "-m", "buy", *interface, order)
    assert (wrong.code, wrong.err.count("\n")) == (1, 1)
    assert str(tmp_path / "typed") not in wrong.err.partition("file=")[0]


def test_javas_writer_options_need_its_files(cli: Cli, tmp_path: Path) -> None:
    assert cli("write").code == 2
    assert cli("write", "-d", tmp_path / "new", "-m", "buy", tmp_path / "no.yaml").code == 2
    assert not (tmp_path / "new").exists()
