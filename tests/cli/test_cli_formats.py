"""Every verb that prints rows prints the same ones in each format."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import quire
from cli_runs import Cli
from damages import erase_marker, fill
from quire._common import replication_file
from quire._common.replication_file import Standing

PARSERS: dict[str, Callable[[bytes], list[Any]]] = {
    "json": json.loads,
    "jsonl": lambda raw: [json.loads(line) for line in raw.splitlines()],
    "yaml": lambda raw: [
        json.loads(quire.types.to_json(quire.types.parse_yaml(text)))
        for text in raw.decode().split("---\n")[1:]
    ],
    "csv": lambda raw: [*csv.DictReader(io.StringIO(raw.decode()))],
    "arrow": lambda raw: pa.ipc.open_stream(raw).read_all().to_pylist(),
}
OBJECTS = {"json", "jsonl", "yaml"}


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


@pytest.fixture
def queues(tmp_path: Path) -> Path:
    """Two queues, `a` and `b`, of which `b` lacks an end mark and has one message more."""
    root = tmp_path / "queues"
    fill(root / "a", 2, 3)
    erase_marker(fill(root / "b", 2, 3)[0])
    with quire.open(root / "b") as queue, queue.appender() as appender:
        queue.tailer("risk").close()
        appender.write_map({"n": 6})
    return root


def rows(cli: Cli, style: str, *arguments: str | Path) -> list[Any]:
    ran = cli(*arguments, "--format", style)
    assert ran.code in {0, 1}, ran.err
    return PARSERS[style](ran.raw)


@pytest.mark.parametrize("style", PARSERS)
def test_stat_has_a_row_a_queue(cli: Cli, queues: Path, style: str) -> None:
    found = rows(cli, style, "stat", queues)
    assert [Path(it["path"]).name for it in found] == ["a", "b"]
    assert [int(it["messages"]) for it in found] == [6, 7]
    if style in OBJECTS:
        assert [it["name"] for it in found[1]["tailers"]] == ["risk"]
        assert found[0]["files"][0]["messages"] == 3
    else:
        assert [int(it["tailers"]) for it in found] == [0, 1]
        assert int(found[1]["max_lag"]) == 7


@pytest.mark.parametrize("style", PARSERS)
def test_a_name_that_is_not_utf8_is_in_every_format(
    cli: Cli, queues: Path, tmp_path: Path, style: str
) -> None:
    odd = tmp_path / os.fsdecode(b"q\xff")
    odd.mkdir()
    (queues / "b").rename(odd / os.fsdecode(b"b\xe9"))
    (found,) = rows(cli, style, "stat", odd)
    assert found["path"].encode("utf-8", "backslashreplace").endswith(rb"/q\udcff/b\udce9")
    assert {it["queue"].encode("utf-8", "backslashreplace") for it in rows(
        cli, style, "read", odd, "--columns", "n"
    )} == {rb"b\udce9"}  # fmt: skip


@pytest.mark.parametrize("style", PARSERS)
def test_the_options_of_a_queue_are_in_every_format(cli: Cli, queues: Path, style: str) -> None:
    found = {it["option"]: it["value"] for it in rows(cli, style, "stat", queues / "a", "--config")}
    assert found["durability"] == "process"
    assert str(found["dont_write"]).lower() == "false"
    assert not found["block_bytes"]


def test_stat_names_each_queue_of_a_directory(cli: Cli, queues: Path) -> None:
    text = cli.ok("stat", queues).out
    assert [line for line in text.splitlines() if line.startswith("==>")] == [
        "==> a <==",
        "==> b <==",
    ]
    alone = cli.ok("stat", queues / "a", "--json").out
    assert cli.ok("stat", queues, "--json").out.startswith(alone)


def test_stat_goes_on_after_a_queue_that_cannot_be_read(cli: Cli, queues: Path) -> None:
    (queues / "a" / "metadata.cq4t").write_bytes(b"spoiled!" * 512)
    ran = cli("stat", queues, "--format", "jsonl")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert str(queues / "a") in ran.err
    assert [json.loads(line)["messages"] for line in ran.lines][-1] == 7


@pytest.mark.parametrize("style", PARSERS)
def test_diff_shows_both_messages_of_a_difference(cli: Cli, queues: Path, style: str) -> None:
    found = rows(cli, style, "diff", queues / "a", queues / "b")
    if style in OBJECTS:
        assert found.pop() == {"alike": 6, "changed": 0, "left": 0, "right": 1}
        assert found[0]["right"]["message"] == {"n": 6}
        assert "left" not in found[0]
    else:
        assert json.loads(found[0]["right_message"]) == {"n": 6}
        assert not found[0]["left"]
    assert [it["kind"] for it in found] == ["right"]


@pytest.mark.parametrize("style", PARSERS)
def test_archive_has_a_row_a_cycle(cli: Cli, queues: Path, tmp_path: Path, style: str) -> None:
    command = ("archive", queues / "a", tmp_path / "archived")
    (row,) = rows(cli, style, *command)
    assert (row["state"], row["topic"], int(row["messages"])) == ("archived", "a", 3)
    assert (tmp_path / "archived" / "topic=a" / row["file"]).stat().st_size == int(row["bytes"])
    assert rows(cli, style, *command) == []
    assert rows(cli, style, "archive", "--verify", tmp_path / "archived") == []


@pytest.mark.parametrize(
    "command",
    [
        ["tailers", "b"],
        ["groups", "b"],
        ["history", "b"],
        ["verify", "b"],
        ["repair", "b"],
        ["removable", "a"],
        ["prune", "a", "--keep", "1s", "--dry-run"],
        ["roll-cycles"],
        ["explain", "a", "0x4d1900000000"],
        ["top", "a", "--once", "--interval", "0.1"],
    ],
    ids=lambda it: it[0],
)
def test_other_rows_are_as_many_in_every_format(cli: Cli, queues: Path, command: list[str]) -> None:
    verb, *more = command
    if verb == "history":
        with quire.open(queues / "b") as queue, queue.appender() as appender:
            appender.write_map({"history": {"sources": [1, 0], "timings": [0, 1, 2]}, "fill": 1})
    if more:
        more[0] = str(queues / more[0])
    counts = {style: len(rows(cli, style, verb, *more)) for style in PARSERS}
    assert len({*counts.values()}) == 1, counts


@pytest.mark.parametrize("style", ["json", "arrow"])
def test_tail_has_the_formats_of_read(cli: Cli, queues: Path, style: str) -> None:
    assert rows(cli, style, "tail", queues / "a", "--no-follow") == rows(
        cli, style, "read", queues / "a"
    )


@pytest.mark.parametrize("style", PARSERS)
def test_a_verb_that_changes_something_reports_it_in_one_row(
    cli: Cli, queues: Path, tmp_path: Path, style: str
) -> None:
    a, b = queues / "a", queues / "b"
    (copied,) = rows(cli, style, "copy", a, tmp_path / "copy")
    assert (int(copied["messages"]), int(copied["files"])) == (6, 2)
    assert copied["last"].startswith("0x")
    (merged,) = rows(cli, style, "merge", a, a, tmp_path / "merged", "--by", "n")
    assert int(merged["messages"]) == 12
    (converted,) = rows(cli, style, "convert", a, tmp_path / "vanilla", "--into", "vanilla")
    assert int(converted["written"]) == 6
    (salvaged,) = rows(cli, style, "salvage", a, tmp_path / "saved")
    assert (int(salvaged["messages"]), int(salvaged["ranges_lost"])) == (6, 0)
    (refreshed,) = rows(cli, style, "refresh", b)
    assert int(refreshed["files"]) == 3
    (unlocked,) = rows(cli, style, "unlock", b)
    assert str(unlocked["unlocked"]) == "False"
    assert not unlocked["pid"]


@pytest.mark.parametrize("style", PARSERS)
def test_a_verb_for_keys_seals_and_replicas_reports_in_one_row_too(
    cli: Cli, queues: Path, tmp_path: Path, style: str
) -> None:
    a, private, public = queues / "a", tmp_path / "key.pem", tmp_path / "key.pub"
    key = Ed25519PrivateKey.generate()
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    with quire.open(a, read_only=True) as queue:
        first = queue.first_index
    assert first is not None
    (sealed,) = rows(cli, style, "seal", a, "--sign", private)
    assert (int(sealed["number"]), int(sealed["cycles"]), len(sealed["root"])) == (0, 2, 64)
    (tmp_path / "proof").write_bytes(cli.ok("prove", a, f"{first:#x}").raw)
    (proved,) = rows(cli, style, "check-proof", tmp_path / "proof", "--trust", public)
    assert (proved["index"], proved["key"]) == (f"{first:#x}", sealed["key"])

    for name in ("old", "new"):
        (tmp_path / name).write_text(name[0] * 32)
    with quire.open(tmp_path / "locked", key=b"o" * 32) as queue, queue.appender() as appender:
        appender.write_bytes(b"x")
    old, new = ("--key-file", tmp_path / "old"), ("--new-key-file", tmp_path / "new")
    (wrapped,) = rows(cli, style, "rewrap", tmp_path / "locked", *old, *new)
    assert int(wrapped["data_keys"]) == 1

    with quire.open(tmp_path / "many") as queue, queue.appender() as appender:
        appender.write_many([b'{"symbol": "EURUSD", "number": %d}' % n for n in range(600)])
    (trained,) = rows(cli, style, "compress-dictionary", tmp_path / "many")
    assert int(trained["samples"]) == 600

    replication_file.write(queues / "b", Standing("0" * 32, 3, "sink"))
    (promoted,) = rows(cli, style, "promote", queues / "b")
    assert (promoted["path"], int(promoted["epoch"])) == (str(queues / "b"), 4)


def test_numbers_have_no_commas_where_no_person_looks(cli: Cli, tmp_path: Path) -> None:
    with quire.open(tmp_path / "many") as queue, queue.appender() as appender:
        appender.write_many([b"x"] * 1_234)
        queue.tailer("risk").close()
    for verb in ("tailers", "verify"):
        text = cli.ok(verb, tmp_path / "many").out
        assert "1234" in text
        assert "1,234" not in text
