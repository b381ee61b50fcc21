"""`quire write --interface` and `quire read --interface`: numbered calls and byte layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

import quire
from cli_runs import Cli


@quire.message(bytes_layout=True, alias="CliTick")
@dataclass
class Tick:
    price: float = 0.0
    size: quire.types.int32 = 0


@quire.message(alias="CliOrder", rename="camel")
@dataclass
class Order:
    last_tick: Tick | None = None
    name: str = ""


class Market(Protocol):
    @quire.calls.method_id(7)
    def halt(self, symbol: str) -> None: ...
    def tick(self, tick: Tick) -> None: ...
    def both(self, tick: Tick, count: int) -> None: ...
    def order(self, order: Order) -> None: ...
    @quire.calls.method_id(8)
    def to(self, name: str) -> Market: ...


MARKET = f"{__name__}:Market"
CALLS: list[tuple[str, str, Callable[[Market], None]]] = [
    ("halt", '"EURUSD"', lambda it: it.halt("EURUSD")),
    ("tick", '{"price":1.5,"size":3}', lambda it: it.tick(Tick(1.5, 3))),
    ("tick", '{"size":3}', lambda it: it.tick(Tick(0.0, 3))),
    ("both", '[{"price":1.5,"size":3},5]', lambda it: it.both(Tick(1.5, 3), 5)),
    (
        "order",
        '{"lastTick":{"price":1.5,"size":3},"name":"x"}',
        lambda it: it.order(Order(Tick(1.5, 3), "x")),
    ),
]


@pytest.mark.parametrize(("method", "text", "call"), CALLS)
def test_what_is_written_is_what_a_method_writer_writes(
    cli: Cli, tmp_path: Path, method: str, text: str, call: Callable[[Market], None]
) -> None:
    theirs = tmp_path / "theirs"
    with quire.open(theirs) as queue, queue.appender() as appender:
        call(appender.method_writer(Market))
    expected = cli.ok("read", theirs, "--format", "hex", "--no-index").raw
    for form in ("jsonl", "yaml"):
        ours, file = tmp_path / form, tmp_path / f"one.{form}"
        file.write_text(text + "\n")
        cli.ok("write", ours, "--create", file, "-m", method, "-i", MARKET)
        assert cli.ok("read", ours, "--format", "hex", "--no-index").raw == expected


def test_calls_are_written_whatever_is_set_from_outside(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED", "1")
    (tmp_path / "one.jsonl").write_text('"EURUSD"\n')
    command = ("write", tmp_path / "queue", "--create", tmp_path / "one.jsonl")
    assert cli.ok(*command, "-m", "halt", "-i", MARKET).out.startswith("written=1 ")


@pytest.mark.parametrize(("method", "text", "call"), CALLS)
def test_what_is_read_has_all_names(
    cli: Cli, path: Path, method: str, text: str, call: Callable[[Market], None]
) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        call(appender.method_writer(Market))
    ran = cli.ok("read", path, "--interface", MARKET, "--format", "jsonl", "--no-index")
    text = text.replace('{"size":3}', '{"price":0,"size":3}')
    assert ran.out == f'{{"{method}":{text}}}\n'


def test_a_chain_of_numbered_calls_has_names(cli: Cli, path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.method_writer(Market).to("LDN").tick(Tick(1.5, 3))
    ran = cli.ok("read", path, "--interface", MARKET, "--format", "jsonl", "--no-index")
    assert ran.out == '{"to":"LDN","tick":{"price":1.5,"size":3}}\n'


def test_a_value_that_does_not_fit_a_byte_layout_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    (file := tmp_path / "one.jsonl").write_text('{"price":"x"}\n')
    ran = cli("write", tmp_path / "queue", "--create", file, "-m", "tick", "-i", MARKET)
    assert (ran.code, "field=tick.tick.price" in ran.err) == (1, True)
    with quire.open(tmp_path / "queue") as queue:
        assert queue.last_index is None
