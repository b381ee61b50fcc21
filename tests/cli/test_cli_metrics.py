"""`quire metrics`: printed once, and served until interrupted."""

from __future__ import annotations

import signal
import socket
from configparser import ConfigParser
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import quire
from cli_runs import Cli, started
from paths import ROOT
from quire.cli.verbs.metrics import (
    _look_for_queues,  # pyright: ignore[reportPrivateUsage]
    _queues,  # pyright: ignore[reportPrivateUsage]
    metrics,
)
from quire.metrics.prometheus import Collector

Samples = dict[tuple[str, str], float]


@pytest.fixture
def queues(tmp_path: Path) -> Path:
    """Three queues below one directory, each of another format."""
    for form in ("chronicle", "vanilla", "quick-queue"):
        with quire.open(tmp_path / "queues" / form, format=form) as queue:
            queue.appender().write_bytes(b"x")
    return tmp_path / "queues"


def parsed(text: str) -> Samples:
    return {
        (sample.name, Path(sample.labels["queue"]).name): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_metrics_of_every_queue_are_printed(cli: Cli, queues: Path) -> None:
    found = parsed(cli.ok("metrics", queues).out)
    for form in ("chronicle", "vanilla", "quick-queue"):
        assert found["quire_up", form] == 1
        assert found["quire_end_index", form] > 0
    alone = parsed(cli.ok("metrics", queues / "chronicle", queues / "none").out)
    assert alone["quire_up", "chronicle"] == 1
    assert alone["quire_up", "none"] == 0


def test_an_address_in_use_is_named(cli: Cli, queues: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = cli("metrics", queues, "--listen", f"127.0.0.1:{port}")
    assert (ran.code, ran.out) == (1, "")
    assert f"cannot listen: address=127.0.0.1:{port} reason=" in ran.err


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_they_are_served_until_a_signal(queues: Path, sent: signal.Signals, code: int) -> None:
    with started("metrics", queues, "--listen", "0") as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert line.startswith("quire: listening: http://127.0.0.1:")
        url = line.split()[-1]
        with urlopen(url) as answer:  # noqa: S310 - the server above
            assert parsed(answer.read().decode())["quire_up", "vanilla"] == 1
        with quire.open(queues / "chronicle") as queue:
            queue.appender().write_many([b"y"] * 5)
            end = queue.last_index
        with urlopen(url) as answer:  # noqa: S310 - the server above
            assert parsed(answer.read().decode())["quire_end_index", "chronicle"] == (end or 0) + 1
        process.send_signal(sent)
        assert process.wait() == code


def test_the_unit_of_systemd_starts_the_command() -> None:
    unit = ConfigParser()
    unit.read_string((ROOT / "docs/quire-metrics.service").read_text("utf-8"))
    program, verb, *arguments = unit["Service"]["ExecStart"].split()
    context = metrics.make_context(verb, arguments)
    assert (Path(program).name, verb) == ("quire", "metrics")
    assert context.params["listen"] == ("127.0.0.1", 9464)


def test_queues_that_are_made_later_are_found(queues: Path) -> None:
    before = _queues((queues,))
    quire.open(queues / "later").close()
    assert _queues((queues,)).keys() - before.keys() == {str(queues / "later")}


def test_a_look_that_fails_leaves_the_queues_that_are_known(
    queues: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collector = Collector(_queues((queues,)))
    rounds = iter(range(3))

    def sleep(_: float) -> None:
        if next(rounds, None) is None:
            raise KeyboardInterrupt
        for name in ("0.qx", "0.cq4"):  # as of a copy that was put beside the queues
            (queues / name).touch()

    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        _look_for_queues(collector, (queues,))

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("quire: cannot look for queues: files of more than one format")
    registry = CollectorRegistry()
    registry.register(collector)
    assert parsed(generate_latest(registry).decode())["quire_up", "vanilla"] == 1


@pytest.mark.parametrize("address", ["here", "127.0.0.1", "70000", "1:x"])
def test_a_wrong_address_is_one_clear_line(cli: Cli, queues: Path, address: str) -> None:
    ran = cli("metrics", queues, "--listen", address)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"'{address}' is not HOST:PORT" in ran.err


def test_an_address_that_is_taken_is_one_clear_line(cli: Cli, queues: Path) -> None:
    with started("metrics", queues, "--listen", "0") as process:
        assert process.stderr is not None
        address = process.stderr.readline().decode().split("/")[2]
        ran = cli("metrics", queues, "--listen", address)
        assert (ran.code, ran.err.count("\n")) == (1, 1)
        assert "in use" in ran.err
