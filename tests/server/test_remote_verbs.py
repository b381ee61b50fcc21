"""Verbs on `quire://` addresses: they do what they do with files, or say why they cannot."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import trustme

import quire
from cli_runs import Cli, run_here, started
from quire.cli.verb_group import TAKES_ADDRESSES, VERBS
from quire.remote import RemoteAppender
from served import WAIT_S, serving

LINES = "".join(f'{{"n": {number}, "s": "x{number}"}}\n' for number in range(1, 6))
FIRST = 5


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


@pytest.fixture
def token(tmp_path: Path) -> str:
    """A token that may all, in the file `tokens`; and alone in the file `token`."""
    rights = [it for right in ("read", "append", "create", "manage") for it in (f"--{right}", "*")]
    ran = run_here("token", "add", "all", "--tokens", tmp_path / "tokens", *rights)
    assert ran.code == 0, ran.err
    (tmp_path / "token").write_text(ran.out)
    return ran.out.strip()


@pytest.fixture
def server(tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that wants the token, which the environment has."""
    monkeypatch.setenv("QUIRE_TOKEN", token)
    (tmp_path / "lines.jsonl").write_text(LINES)
    with serving(tmp_path / "queues", "--tokens", tmp_path / "tokens") as (port, _):
        yield f"quire://127.0.0.1:{port}"


def test_write_and_read(server: str, cli: Cli, tmp_path: Path) -> None:
    refused = cli("write", f"{server}/a/b", tmp_path / "lines.jsonl")
    assert (refused.code, "--create makes a queue" in refused.err) == (1, True)
    assert cli.ok("write", f"{server}/a/b", tmp_path / "lines.jsonl", "--create", "--sync").out
    cli.ok("write", f"{server}/a/c", tmp_path / "lines.jsonl", "--create")
    for rest in (
        ["--format", "jsonl"],
        ["--format", "jsonl", "--reverse", "--count", "2"],
        ["--last", "2", "--include", "x[12]"],
        ["--where", "n > 3", "--columns", "n,s", "--format", "csv"],
        ["--format", "hex", "--no-index"],
    ):
        remote = cli.ok("read", f"{server}/a/b", *rest)
        assert remote.out == cli.ok("read", tmp_path / "queues" / "a" / "b", *rest).out
        assert remote.out
        below = cli.ok("read", f"{server}/a", *rest)
        assert below.out == cli.ok("read", tmp_path / "queues" / "a", *rest).out
    everything = cli.ok("read", server, "--format", "jsonl").lines
    assert [json.loads(it)["queue"] for it in everything] == FIRST * ["a/b"] + FIRST * ["a/c"]


def test_a_named_tailer_moves(server: str, cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", f"{server}/orders", tmp_path / "lines.jsonl", "--create")
    found = cli.ok("read", f"{server}/orders", "--named", "risk", "--count", "2", "--format", "raw")
    assert found.raw.count(b"x") == 2
    listed = cli.ok("tailers", f"{server}/orders", "--format", "csv").lines
    assert [it.split(",")[2] for it in listed[1:]] == ["3"]
    cli.ok("tailers", f"{server}/orders", "--delete", "risk")
    with quire.open(tmp_path / "queues" / "orders", read_only=True) as queue:
        assert queue.named_tailers() == []


def test_tail_follows(server: str, cli: Cli, tmp_path: Path) -> None:
    address = f"{server}/orders"
    cli.ok("write", address, tmp_path / "lines.jsonl", "--create")
    assert len(cli.ok("tail", address, "-n", "2", "--no-follow", "--format", "jsonl").lines) == 2
    shown = ["-n", "1", "--format", "text", "--no-index", "--token-file", f"{tmp_path}/token"]
    with started("tail", address, *shown) as tail:
        assert tail.stdout is not None
        assert b"x5" in tail.stdout.readline()
        cli.ok("write", address, tmp_path / "lines.jsonl")
        assert b"x1" in tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        assert tail.wait(WAIT_S) == 130


def test_stat_and_groups(server: str, cli: Cli, tmp_path: Path) -> None:
    address, home = f"{server}/orders", tmp_path / "queues" / "orders"
    cli.ok("write", address, tmp_path / "lines.jsonl", "--create")
    with (
        quire.open(home) as queue,
        queue.tailer("risk") as risk,
        queue.group("billing").consumer() as consumer,
    ):
        risk.read()
        assert consumer.read() is not None
        found = json.loads(cli.ok("stat", address, "--json").out)
        here = json.loads(cli.ok("stat", home, "--json").out)
        same = ("format", "roll_cycle", "messages", "first_index", "last_index", "tailers")
        assert {name: found[name] for name in same} == {name: here[name] for name in same}
        assert [it["messages"] for it in found["cycles"]] == [FIRST]
        groups = [cli.ok("groups", it, "--format", "csv").lines[1] for it in (address, home)]
        names = [it.split(",")[:3] for it in groups]
        assert names[0] == names[1] == ["billing", "5", "1"]
    text = cli.ok("stat", server).out
    assert "==> orders <==" in text
    assert "messages     5" in text


def test_top(server: str, cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", f"{server}/a/b", tmp_path / "lines.jsonl", "--create")
    cli.ok("write", f"{server}/c", tmp_path / "lines.jsonl", "--create")
    quick = ["--once", "--interval", "0.1", "--format", "jsonl"]
    rows = [json.loads(it) for it in cli.ok("top", server, *quick).lines]
    assert [(it["queue"], it["state"], it["files"]) for it in rows] == [
        ("a/b", "ok", 1),
        ("c", "ok", 1),
    ]
    (row,) = [json.loads(it) for it in cli.ok("top", f"{server}/c", *quick).lines]
    assert row["queue"] == "c"
    table = cli.ok("top", f"{server}/c", tmp_path / "queues" / "a", *quick[:3]).lines
    assert [it.split()[0] for it in table[1:]] == ["a/b", "c"]


def test_top_goes_on_while_a_server_is_away(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "lines.jsonl").write_text(LINES)
    with serving(tmp_path / "queues") as (port, process):
        address = f"quire://127.0.0.1:{port}"
        cli.ok("write", f"{address}/orders", tmp_path / "lines.jsonl", "--create")
        with started("top", address, "--interval", "0.1", "--format", "jsonl") as top:
            assert _state(top) == "ok"
            cli.ok("write", f"{address}/orders", tmp_path / "lines.jsonl")
            while not (row := _row(top))["messages_per_second"]:
                assert row["state"] == "ok"
            process.terminate()
            process.wait(WAIT_S)
            while _state(top) == "ok":
                pass
            top.send_signal(signal.SIGINT)
            assert top.wait(WAIT_S) == 130
    gone = cli("top", address, "--once")
    assert (gone.code, "cannot reach the server" in gone.err) == (1, True)


def _row(top: subprocess.Popen[bytes]) -> dict[str, object]:
    assert top.stdout is not None
    found: dict[str, object] = json.loads(top.stdout.readline())
    return found


def _state(top: subprocess.Popen[bytes]) -> object:
    return _row(top)["state"]


def test_ways_to_give_a_token(
    server: str, cli: Cli, tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("write", f"{server}/orders", tmp_path / "lines.jsonl", "--create")
    read = ["read", f"{server}/orders", "--count", "1"]
    monkeypatch.delenv("QUIRE_TOKEN")
    assert "NOAUTH the server requires a token" in cli(*read).err
    assert cli.ok(*read, "--token", token).out
    assert cli.ok(*read, "--token-file", tmp_path / "token").out
    monkeypatch.setenv("QUIRE_TOKEN", "wrong")
    assert "WRONGPASS" in cli(*read).err
    assert cli.ok(*read, "--token-file", tmp_path / "token").out
    both = cli(*read, "--token", token, "--token-file", tmp_path / "token")
    assert (both.code, "do not go together" in both.err) == (2, True)
    (tmp_path / "two").write_text("one two\n")
    assert cli(*read, "--token-file", tmp_path / "two").code == 2
    assert cli(*read, "--token-file", tmp_path / "none").code == 2
    help_text = cli.ok("read", "--help").out
    assert "QUIRE_TOKEN" in help_text
    assert "--config" in cli("stat", f"{server}/orders", "--config").err
    assert "QUIRE_TOKEN" not in cli("stat", tmp_path / "queues" / "orders", "--config").err


@pytest.mark.check
def test_tls(tmp_path: Path, cli: Cli, token: str) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "node.key"))
    (tmp_path / "node.pem").write_bytes(b"".join(it.bytes() for it in issued.cert_chain_pems))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    mine = authority.issue_cert("client")
    mine.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "mine.pem"))
    (tmp_path / "lines.jsonl").write_text(LINES)
    files = ["--certificate", tmp_path / "node.pem", "--key", tmp_path / "node.key"]
    files += ["--authority", tmp_path / "ca.pem", "--tokens", tmp_path / "tokens"]
    given = ["--token-file", f"{tmp_path}/token", "--authority", f"{tmp_path}/ca.pem"]
    with serving(tmp_path / "queues", *files) as (port, _):
        address = f"quire://127.0.0.1:{port}/orders"
        mutual = [*given, "--client-certificate", f"{tmp_path}/mine.pem"]
        cli.ok("write", address, tmp_path / "lines.jsonl", "--create", *mutual)
        assert len(cli.ok("read", address, "--format", "jsonl", *mutual).lines) == FIRST
        assert cli("read", address, *given).code == 1
        assert cli("read", address, "--tls", *given[:2]).code == 1
        assert cli("read", address, "--token", token).code == 1
        alone = cli("read", address, "--client-certificate", tmp_path / "mine.pem")
        assert (alone.code, "needs --tls or --authority" in alone.err) == (2, True)


def test_a_token_does_not_leave_this_machine_in_the_clear(cli: Cli) -> None:
    ran = cli("read", "quire://203.0.113.1:7000/orders", "--token", "secret")
    assert (ran.code, "only over TLS" in ran.err, "secret" in ran.err) == (1, True, False)


@pytest.mark.parametrize("address", ["quire://nowhere", "quire://u:p@h:1/q", "quire://h:1/q?x=1"])
def test_addresses_that_are_none(cli: Cli, address: str) -> None:
    ran = cli("read", address)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("option", ["--metadata", "--interface", "--on-damage"])
def test_what_needs_files_is_refused(cli: Cli, option: str) -> None:
    value = {"--interface": ["quire:Queue"], "--on-damage": ["skip"]}.get(option, [])
    ran = cli("read", "quire://127.0.0.1:1/orders", option, *value)
    assert (ran.code, "run it on the server's machine" in ran.err) == (2, True)


def test_queues_that_are_not_there(server: str, cli: Cli) -> None:
    for verb in (["read"], ["stat"], ["top", "--once"], ["tail", "--no-follow"]):
        ran = cli(verb[0], f"{server}/none", *verb[1:])
        assert (ran.code, "no queue at this address" in ran.err) == (1, True)
    assert "no queue at this address that may be read" in cli("read", server).err


def _commands() -> dict[str, click.Command]:
    places = {verb: place.partition(":") for verb, place in VERBS.items()}
    return {
        verb: getattr(importlib.import_module(module), name)
        for verb, (module, _, name) in places.items()
    }


def test_each_verb_takes_addresses_or_says_that_it_does_not(cli: Cli) -> None:
    for verb, command in _commands().items():
        arguments = [it for it in command.params if isinstance(it, click.Argument)]
        if isinstance(command, click.Group) or verb in {*TAKES_ADDRESSES, "bench"}:
            continue  # which measures a disk
        if not any(it.name in {"path", "paths", "source", "directory"} for it in arguments):
            continue
        ran = cli(verb, *(len(arguments) * ["quire://127.0.0.1:1/orders"]))
        assert ran.code == 2, (verb, ran)
        assert "run it on the server's machine" in ran.err, (verb, ran)


@pytest.mark.check
def test_write_sends_lines_together_and_names_the_malformed_one(
    server: str, token: str, cli: Cli, tmp_path: Path
) -> None:
    many = tmp_path / "many.jsonl"
    many.write_text("".join(f'{{"n":{number}}}\n' for number in range(30_000)))
    assert "written=30000 last=0x" in cli.ok("write", f"{server}/many", many, "--create").out
    served = cli.ok("read", tmp_path / "queues" / "many", "--format", "jsonl", "--no-index")
    assert served.out == many.read_text()

    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"n": 1}\n{"n": 2}\n{"n": \n{"n": 4}\n')
    for place in (f"{server}/bad", tmp_path / "home"):
        stopped = cli("write", place, bad, "--create")
        assert (stopped.code, "line=3" in stopped.err) == (1, True), stopped.err
        assert "written=2" in stopped.err
        skipped = cli("write", place, bad, "--on-error", "skip")
        assert (skipped.code, "written=3 skipped=1" in skipped.out) == (1, True)
        assert len(cli.ok("read", place, "--format", "jsonl").lines) == 5

    long = tmp_path / "long.txt"
    long.write_text("short\n" + "x" * 100_000 + "\nafter\n")
    address = f"{server}/long"
    open_any: Any = quire.open
    open_any(address, block_bytes=2**16, token=token).close()
    refused = cli("write", address, long)
    assert (refused.code, "line=2 written=1" in refused.err) == (1, True), refused.err


def test_calls_of_an_interface_are_sent_together(
    server: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    send = RemoteAppender.write_many

    def write_many(self: RemoteAppender, payloads: list[bytes]) -> int | None:
        sent.append(len(payloads))
        return send(self, payloads)

    monkeypatch.setattr(RemoteAppender, "write_many", write_many)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "spoken.py").write_text("class Say:\n    def say(self, number: int) -> None: ...\n")
    lines = [f"{number}\n" for number in range(2000)]
    (tmp_path / "calls.jsonl").write_text("".join(lines))
    (tmp_path / "wrong.jsonl").write_text(lines[0] + '"x"\n' + lines[1])
    options = ("-m", "say", "-i", "spoken:Say", "--create", f"{server}/calls")
    ran = cli("write", *options, tmp_path / "calls.jsonl")
    assert "written=2000 last=" in ran.out, ran.err
    assert sum(sent) == 2000
    assert len(sent) < 200
    ran = cli("write", *options, tmp_path / "wrong.jsonl")
    assert ran.code == 1
    assert "line=2 written=1" in ran.err
    at_home = tmp_path / "home"
    cli.ok("write", *options[:-1], at_home, tmp_path / "calls.jsonl")
    with quire.open(at_home) as home, quire.open(tmp_path / "queues" / "calls") as served:
        written = home.tailer().read_many(3000)
        assert served.tailer().read_many(3000) == [*written, written[0]]


def _writing(address: str, folder: Path) -> list[str]:
    return ["write", address, "--create", "--format", "text", f"--token-file={folder / 'token'}"]


@pytest.mark.check
def test_a_line_that_comes_alone_is_sent_alone(server: str, token: str, tmp_path: Path) -> None:
    with started(*_writing(f"{server}/orders", tmp_path)) as process:
        assert process.stdin is not None
        for number in range(3):
            process.stdin.write(b"line %d\n" % number)
            process.stdin.flush()
            with quire.open(f"{server}/orders", token=token) as queue, queue.tailer() as tailer:
                for message in tailer.follow(timeout_s=60):
                    if message.to_text() == f"line {number}":
                        break
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.slow
def test_write_says_which_line_a_server_did_not_take(
    tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_TOKEN", token)
    with serving(tmp_path / "queues", "--tokens", tmp_path / "tokens") as (port, server):
        address = f"quire://127.0.0.1:{port}/orders"
        with started(*_writing(address, tmp_path)) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(b"one\ntwo\n")
            process.stdin.flush()
            with quire.open(address, token=token) as queue:
                texts = (it.to_text() for it in queue.tailer().follow())
                assert [next(texts), next(texts)] == ["one", "two"]
            server.kill()
            server.wait()
            process.stdin.write(b"three\n")
            process.stdin.close()
            assert process.wait() == 1
            assert b"line=3 written=2" in process.stderr.read()
