"""Tokens: which are let in, for what, and until when."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from redis.exceptions import AuthenticationError, NoPermissionError

import quire
from cli_runs import ENVIRONMENT, run, run_here, started
from quire.errors import OptionsError
from quire.server import Server, TokenFile
from quire.server.served_queue import ServedQueue
from served import WAIT_S, command, connected, serving, talk


def added(file: Path, name: str, *options: str) -> str:
    ran = run_here("token", "add", name, "--tokens", str(file), *options)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def test_a_token_is_for_what_its_patterns_say(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    reader = added(file, "reader", "--read", "prices/*", "--expires", "30d")
    writer = added(
        file, "writer", "--append", "prices/*", "--append", "orders", "--create", "prices/*"
    )
    with serving(tmp_path / "queues", "--tokens", file) as (port, _):
        with connected(port, password=writer) as client:
            client.xadd("prices/eur", {"n": "1"})
            for words in ("XADD orders * n 1", "XLEN prices/eur", "XTRIM prices/eur MAXLEN ~ 1"):
                with pytest.raises(NoPermissionError):
                    client.execute_command(*words.split())
            assert client.scan()[1] == []
        with connected(port, username="anyone", password=reader, protocol=3) as client:
            assert client.xlen("prices/eur") == 1
            assert client.scan()[1] == [b"prices/eur"]
            with pytest.raises(NoPermissionError):
                client.xadd("prices/eur", {"n": "2"})
            with pytest.raises(NoPermissionError):
                client.xlen("orders")


def test_without_a_token_nothing_is_answered(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    added(file, "reader", "--read", "*")
    with serving(tmp_path / "queues", "--tokens", file) as (port, _):
        for words in (["PING"], ["XLEN", "a"], ["NONSENSE"], ["COMMAND"], ["INFO"]):
            assert talk(port, command(*words)) == b"-NOAUTH Authentication required.\r\n"
        wrong = talk(port, command("AUTH", "wrong") + command("AUTH", "u", "wrong"))
        assert wrong.count(b"-WRONGPASS") == 2
        assert talk(port, command("HELLO", "3", "AUTH", "u", "wrong")).startswith(b"-WRONGPASS")
        assert talk(port, command("HELLO", "3")).startswith(b"-NOAUTH")
        large = command("AUTH", "x" * 20_000)
        assert talk(port, large, ends=False).startswith(b"-ERR Protocol error")


def test_a_token_that_is_revoked_or_expires_ends_what_uses_it(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token = added(file, "reader", "--read", "*")
    short = added(file, "short", "--read", "*", "--expires", "1s")
    with (
        serving(tmp_path / "queues", "--tokens", file) as (port, _),
        connected(port, password=token, single_connection_client=True) as client,
        socket.create_connection(("127.0.0.1", port), timeout=60) as raw,
    ):
        assert client.ping()
        raw.sendall(command("AUTH", token) + command("XREAD", "BLOCK", "0", "STREAMS", "a", "$"))
        assert raw.recv(5, socket.MSG_WAITALL) == b"+OK\r\n"
        assert run_here("token", "revoke", "reader", "--tokens", str(file)).code == 0
        with pytest.raises(AuthenticationError):
            client.xlen("a")
        assert raw.recv(100).startswith(b"-NOAUTH")
        known = json.loads(file.read_text().splitlines()[1])
        while time.time() < known["expires"]:
            time.sleep(0.05)
        assert talk(port, command("AUTH", short)).startswith(b"-WRONGPASS")


def test_a_token_that_is_revoked_ends_a_command_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    token = tokens.add("reader", {"read": ("*",)})
    with quire.open(tmp_path / "queues" / "q") as queue:
        queue.appender().write_text("meant for the reader")
    begun, goes_on = Event(), Event()
    read = ServedQueue.read

    def held(*given: Any) -> Any:  # noqa: ANN401 - as the method
        begun.set()
        goes_on.wait()
        return read(*given)

    monkeypatch.setattr(ServedQueue, "read", held)

    async def ask() -> None:
        async with Server(tmp_path / "queues", tokens=tokens.path) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            try:
                writer.write(command("AUTH", token) + command("XRANGE", "q", "-", "+"))
                assert await reader.readline() == b"+OK\r\n"
                await asyncio.to_thread(begun.wait)
                tokens.revoke("reader")
                assert await reader.readline() == b"-NOAUTH Authentication required.\r\n"
            finally:
                goes_on.set()
            writer.write(command("AUTH", tokens.add("other", {"read": ("*",)})) + command("PING"))
            assert await reader.readline() == b"+OK\r\n"  # and nothing of the range
            assert await reader.readline() == b"+PONG\r\n"
            writer.close()
            await writer.wait_closed()

    asyncio.run(asyncio.wait_for(ask(), WAIT_S))


@pytest.mark.parametrize("is_given", [True, False])
def test_a_file_of_tokens_that_is_named_and_missing_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_given: bool
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "queues").mkdir()
    option = ["--tokens", str(tmp_path / "missing")] if is_given else []
    with started("serve", tmp_path / "queues", "--listen", "127.0.0.1:0", *option) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"listening")
        process.terminate()
        err = process.communicate(timeout=WAIT_S)[1].decode()
    assert err.count("the file of tokens does not exist") == is_given
    assert err.count("\n") == is_given


@pytest.mark.slow
def test_a_slow_client_without_a_token_is_disconnected(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    added(file, "reader", "--read", "*")
    with (
        serving(tmp_path / "queues", "--tokens", file) as (port, _),
        socket.create_connection(("127.0.0.1", port), timeout=60) as raw,
    ):
        raw.sendall(b"*1\r\n$4\r\nPI")
        assert b"took too long" in raw.recv(1000)
        assert raw.recv(1) == b""


def test_the_file_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "config" / "tokens"
    token = added(file, "reader", "--read", "*")
    assert file.stat().st_mode & 0o777 == 0o600
    assert token not in file.read_text()
    assert len(token) == 43
    again = run_here("token", "add", "reader", "--tokens", str(file), "--read", "*")
    assert (again.code, "revoke it first" in again.err) == (2, True)
    nothing = run_here("token", "add", "nothing", "--tokens", str(file))
    assert (nothing.code, "without any right" in nothing.err) == (2, True)
    listed = run_here("token", "list", "--tokens", str(file)).out
    assert listed == "reader  expires=never  read=*\n"
    rows = json.loads(run_here("token", "list", "--tokens", str(file), "--format", "json").out)
    assert rows == [{"name": "reader", "expires": None, "valid": True, "rights": {"read": ["*"]}}]
    flat = run_here("token", "list", "--tokens", str(file), "--format", "csv").out
    assert flat == "name,expires,valid,rights\nreader,,True,read=*\n"
    file.chmod(0o640)
    with pytest.raises(OptionsError, match="chmod 600"):
        TokenFile(file).tokens()
    file.chmod(0o600)
    file.write_text("{}\n")
    with pytest.raises(OptionsError, match="not a file of tokens"):
        TokenFile(file).tokens()
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "elsewhere").chmod(0o600)
    with pytest.raises(OptionsError, match="other users can access"):
        TokenFile(file).tokens()


def test_beyond_this_machine_a_certificate_and_tokens_are_needed(tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    arguments = ["serve", str(tmp_path / "queues"), "--listen", "203.0.113.1:1"]
    refused = run(*arguments, "--tokens", str(tmp_path / "none"))
    assert refused.code == 2
    assert "needs TLS and tokens" in refused.err


def test_who_did_what_is_in_the_audit_log(tmp_path: Path) -> None:
    file, audit = tmp_path / "tokens", tmp_path / "audit"
    token = added(file, "reader", "--read", "*")
    with serving(tmp_path / "queues", "--tokens", file, "--audit", audit) as (port, _):
        talk(port, command("AUTH", "wrong"))
        with connected(port, password=token) as client:
            client.xlen("orders")
            with pytest.raises(NoPermissionError):
                client.xadd("orders", {"n": "1"})
        with quire.open(audit, read_only=True) as queue, queue.tailer() as tailer:
            rows = [it.to_dict() for it in tailer]
    assert [(it["what"], it["who"], it["about"]) for it in rows] == [
        ("wrong token", "", ""),
        ("authenticated", "reader", ""),
        ("read", "reader", "orders"),
        ("refused", "reader", "append orders"),
    ]
    assert all(it["from"].startswith("127.0.0.1:") for it in rows)
    assert audit.stat().st_mode & 0o077 == 0
