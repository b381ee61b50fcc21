"""Options that take a time understand `-15m` and `now`, in every verb."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

import quire
from cli_runs import Cli
from quire._common.units import relative_time
from quire.cli.parameters import parse_point
from quire.cli.verb_group import VERBS
from quire.cli.verb_group import quire as group

NOW = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue of which each message says how many minutes ago it was."""
    path = tmp_path / "orders"
    with quire.open(path) as queue, queue.appender() as appender:
        for minutes in (120, 30, 10, 1):
            at = datetime.now(UTC) - timedelta(minutes=minutes)
            appender.write_map({"minutes": minutes, "at": at})
    return path


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("now", timedelta()),
        ("-15m", timedelta(minutes=15)),
        ("-1.5 h", timedelta(hours=1.5)),
        ("-2 days", timedelta(days=2)),
        ("-500ms", timedelta(milliseconds=500)),
    ],
)
def test_a_duration_with_a_minus_is_a_time_before_now(text: str, ago: timedelta) -> None:
    assert relative_time(text, NOW) == NOW - ago


@pytest.mark.parametrize(
    "text", ["15m", "-15", "-", "--15m", "-15x", "-0s", "-1e3s", "-99999999w", ""]
)
def test_other_texts_are_not_relative(text: str) -> None:
    assert relative_time(text, NOW) is None


@pytest.mark.parametrize("text", ["-15", "-15x", "15m", "-99999999w", "yesterday"])
def test_a_wrong_time_is_one_clear_line(cli: Cli, path: Path, text: str) -> None:
    ran = cli("read", path, "--from", text)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"'{text}' is neither an index" in ran.err
    assert "-15m for 15 minutes ago" in ran.err


def test_a_range_of_relative_times(cli: Cli, path: Path) -> None:
    def read(*options: str) -> list[int]:
        command = ("read", path, "--format", "jsonl", "--columns", "minutes", "--time-field", "at")
        return [json.loads(line)["minutes"] for line in cli.ok(*command, *options).lines]

    assert read("--from", "-15m") == [10, 1]
    assert read("--from=-1h", "--to", "-5m") == [30, 10]
    assert read("--to", "now") == [120, 30, 10, 1]
    assert read("--from", "now") == []


def test_other_verbs_take_relative_times(cli: Cli, path: Path, tmp_path: Path) -> None:
    with quire.open(path) as queue:
        queue.tailer("risk").close()
    cli.ok("tailers", path, "--move", "risk", "-15m", "--time-field", "at")
    (row,) = json.loads(cli.ok("tailers", path, "--format", "json").out)
    assert row["messages"] == 2
    span = ("--from", "-1h", "--to", "-5m", "--time-field", "at")
    out = tmp_path / "copied"
    assert cli.ok("replay", path, *span, "--to-queue", out).out.startswith("written=2 ")
    (cycle,) = json.loads(
        cli.ok("roll-cycles", "--queue", path, "--time", "-1ms", "--format", "json").out
    )
    with quire.open(path) as queue:
        assert cycle["cycle"] == queue.cycles[-1]


def _options(command: click.Command, name: str) -> list[tuple[str, click.Option]]:
    if isinstance(command, click.Group):
        return [
            found
            for key, one in command.commands.items()
            for found in _options(one, f"{name} {key}")
        ]
    return [(name, it) for it in command.params if isinstance(it, click.Option)]


def test_every_option_that_takes_a_time_has_this_grammar() -> None:
    context = click.Context(group)
    found = {
        f"{name} {option.opts[0]}": option
        for verb in VERBS
        if (command := group.get_command(context, verb)) is not None
        for name, option in _options(command, verb)
        if option.metavar in {"POINT", "TIME", "NAME POINT"} and option.opts[0] != "--every"
    }
    assert {"read --from", "tail --to", "diff --from", "publish --to", "roll-cycles --time"} <= {
        *found
    }
    for name, option in found.items():
        kind = option.type.types[-1] if isinstance(option.type, click.Tuple) else option.type
        parse: Callable[..., object] = kind.convert
        given = parse("-15m", option, context)
        assert isinstance(given, datetime), name
        assert abs(datetime.now(UTC) - timedelta(minutes=15) - given) < timedelta(minutes=1), name
    assert isinstance(parse_point("now"), datetime)
