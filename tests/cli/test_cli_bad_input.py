"""Bad input of every verb: one clear line on stderr, exit code 1 or 2, and nothing changed."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli
from damages import fill
from parameters import some
from queues import copy_of, exit_code, fork, snapshot
from quire.cli import main
from quire.cli.verb_group import VERBS

NOBODY = 65_534
INDEX = "0x4d1900000000"
OUT = "OUT"
# What follows the verb and its path; OUT becomes a path of the test's own.
REST: dict[str, list[str]] = {
    "archive": [OUT],
    "compress-dictionary": [],
    "convert": [OUT, "--into", "vanilla"],
    "copy": [OUT],
    "diff": ["whole"],
    "drain": [],
    "dump": [],
    "explain": [INDEX],
    "groups": [],
    "handover": ["--to", "nobody", "--timeout", "1"],
    "history": [],
    "merge": [OUT, "--by", "n"],
    "pretouch": ["--once"],
    "promote": [],
    "prove": [INDEX],
    "prune": ["--max-cycles", "1"],
    "publish": ["--stdout", "--framing", "length"],
    "read": [],
    "record": ["--stdin"],
    "refresh": [],
    "removable": [],
    "repair": ["--apply"],
    "replay": ["--to-queue", OUT],
    "rewrap": ["--key-file", "key", "--new-key-file", "key"],
    "salvage": [OUT],
    "seal": [],
    "split": [OUT, "--by", "cycle"],
    "stat": [],
    "tail": ["--no-follow"],
    "tailers": [],
    "time-index": ["--time-field", "n"],
    "top": ["--once", "--interval", "0.1"],
    "unlock": [],
    "verify": [],
    "write": ["lines.yaml"],
}
# To `metrics`, a queue that is missing is one that is not up.
WITHOUT_A_QUEUE = {
    *(
        "bench",
        "check-proof",
        "completion",
        "jitter",
        "metrics",
        "pipeline",
        "replicate",
        "roll-cycles",
        "serve",
        "token",
    )
}
# These need to write to the queue, and no others do.
WRITERS = {"drain", "pretouch", "record", "refresh", "time-index", "unlock", "write"}


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


@pytest.fixture(autouse=True)
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A queue of three days, in the working directory."""
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "whole", 3, 4)
    (tmp_path / "lines.yaml").write_text("n: 1\n")
    (tmp_path / "key").write_bytes(b"k" * 32)
    return tmp_path / "whole"


def command(verb: str, path: Path | str) -> list[str]:
    return [verb, str(path), *REST[verb]]


def test_every_verb_is_tried() -> None:
    assert {*REST} == {*VERBS} - WITHOUT_A_QUEUE


@pytest.mark.parametrize("verb", REST)
@pytest.mark.parametrize("kind", ["missing", "empty", "other", "a file"])
def test_a_path_that_is_no_queue(cli: Cli, tmp_path: Path, verb: str, kind: str) -> None:
    path = tmp_path / "bad"
    if kind == "a file":
        path.write_text("hello")
    elif kind != "missing":
        path.mkdir()
    if kind == "other":
        (path / "notes.txt").write_text("hello")
    before = snapshot(tmp_path)
    ran = cli(*command(verb, path))
    assert (ran.code in {1, 2}, ran.err.count("\n")) == (True, 1), ran
    assert str(path) in ran.err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["read", "whole", "--from", "yesterday"], "'yesterday'"),
        (["read", "whole", "--to", "0xfffffffffffffffff"], "'0xfffffffffffffffff'"),
        (["read", "whole", "--where", "n >"], "n >"),
        (["read", "whole", "--where", "__import__('os')"], "__import__"),
        (["read", "whole", "--include", "("], "'('"),
        (["read", "whole", "--zone", "Nowhere/City"], "'Nowhere/City'"),
        (["read", "whole", "--interface", "nothing:Here"], "'nothing:Here'"),
        (["read", "whole", "--last", "-1"], "-1"),
        (["dump", "whole", "--from", "yesterday"], "'yesterday'"),
        (["dump", "whole", "--from", "0x4d1900000009"], "0x4d1900000009"),
        (["dump", "whole", "--from", "0x4d1900000009", "--to", "5"], "0x5"),
        (["dump", "whole/metadata.cq4t", "--to", "5"], "metadata.cq4t"),
        (["tail", "whole", "--where", "n ="], "n ="),
        (["history", "whole", "--from", "0x"], "'0x'"),
        (["replay", "whole", "--from", "2024-13-01"], "'2024-13-01'"),
        (["replay", "whole", "--speed", "fast"], "'fast'"),
        (["diff", "whole", "whole", "--to", "1ns"], "'1ns'"),
        (["explain", "whole", "x"], "'x'"),
        (["explain", "whole", "0x4d1900000009"], "0x4d1900000009"),
        (["split", "whole", "parts", "--where", "n >"], "n >"),
        (["split", "whole", "parts", "--by", "time", "--every", "soon"], "soon"),
        (["merge", "whole", "whole", "all", "--by", "n", "--roll-cycle", "NOON"], "NOON"),
        (["prune", "whole", "--keep", "long"], "long"),
        (["prune", "whole", "--max-bytes", "much"], "much"),
        (["tailers", "whole", "--move", "risk", "nowhere"], "nowhere"),
        (["tailers", "whole", "--delete", "nobody"], "nobody"),
        (["groups", "whole", "--reset", "nobody", "nowhere"], "nowhere"),
        (["roll-cycles", "NOON"], "NOON"),
        (["convert", "whole", "other", "--into", "csv"], "csv"),
        (["verify", "whole", "--format", "xml"], "xml"),
        (["time-index", "whole", "--time-field", "when"], "field=when"),
        (["time-index", "whole", "--format", "xml"], "xml"),
        (["top", "whole", "--once", "--interval", "0"], "0"),
    ],
)
def test_a_wrong_point_or_expression(
    cli: Cli, tmp_path: Path, arguments: list[str], named: str
) -> None:
    before = snapshot(tmp_path)
    ran = cli(*arguments)
    assert (ran.code in {1, 2}, ran.err.count("\n"), ran.out) == (True, 1, ""), ran
    assert named in ran.err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("verb", REST)
def test_a_queue_without_messages(cli: Cli, tmp_path: Path, verb: str) -> None:
    path = tmp_path / "none"
    quire.open(path, block_bytes=1 << 16).close()
    before = snapshot(tmp_path)
    ran = cli(*command(verb, path), *(["--once"] if verb == "drain" else []))
    assert ran.code in {0, 1, 2}
    if ran.code != 0 and verb not in {"diff", "record"}:
        assert ran.err.count("\n") == 1, ran
        assert snapshot(tmp_path) == before


def test_too_few_messages_for_a_dictionary(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "none"
    quire.open(path, block_bytes=1 << 16).close()
    before = snapshot(tmp_path)
    ran = cli("compress-dictionary", path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("quire: no dictionary can be trained on the messages: samples=0 ")
    ran = cli("compress-dictionary", path, "--samples", "99999999")
    assert (ran.code, "'--samples': 99999999" in ran.err) == (2, True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("verb", REST)
def test_a_queue_that_goes_away(
    cli: Cli, tmp_path: Path, whole: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is removed once it was opened."""
    path = copy_of(whole, tmp_path / "gone")
    opened: Callable[..., Any] = quire.open

    def removing(place: str | Path, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        found = opened(place, *arguments, **options)
        if Path(place) == path:
            shutil.rmtree(path, ignore_errors=True)
        return found

    monkeypatch.setattr(quire, "open", removing)
    ran = cli(*command(verb, path))
    assert ran.code in {0, 1, 2}
    assert ran.err.count("\n") == (ran.code != 0), ran
    if verb in {"drain", "pretouch", "write"}:
        assert (ran.code, str(path) in ran.err) == (1, True), ran


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("mode", some([0o000, 0o555], keep=[0]))
def test_a_queue_of_another_user(tmp_path: Path, whole: Path, mode: int) -> None:
    """Nothing of it may be read, or all of it and nothing written."""
    found = tmp_path / "found.json"
    path, theirs = copy_of(whole, tmp_path / "theirs"), tmp_path / "out"
    theirs.mkdir()
    for folder in (tmp_path, *[*tmp_path.parents][:3]):  # a worker of pytest's adds one
        folder.chmod(folder.stat().st_mode | 0o011)
    found.touch()
    for place in (found, theirs):
        os.chown(place, NOBODY, NOBODY)
    (tmp_path / "lines.yaml").chmod(0o644)
    (tmp_path / "key").chmod(0o644)
    for file in path.iterdir():
        file.chmod(mode & 0o444)
    path.chmod(mode)
    before = snapshot(path)

    def child() -> None:
        for place in VERBS.values():
            importlib.import_module(place.partition(":")[0])
        for verb in set(REST) - {"drain"}:  # what it imports, the user below may not read
            run_as_child(command(verb, copy_of(whole, tmp_path / f"warm-{verb}")), tmp_path / verb)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        ran = {verb: run_as_child(command(verb, path), theirs / verb) for verb in REST}
        found.write_text(json.dumps(ran))

    assert exit_code(fork(child)) == 0
    assert snapshot(path) == before
    for verb, (code, err) in json.loads(found.read_text()).items():
        if mode == 0 or verb in WRITERS:
            assert (code in {1, 2}, err.count("\n")) == (True, 1), (verb, code, err)
            assert "Permission denied" in err, (verb, err)
            assert str(path) in err, (verb, err)
            assert ("read_only=True" in err) <= (mode != 0), (verb, err)  # is no help then
        else:
            summaries = 1 if verb == "publish" else 0  # its messages are on stdout
            assert err.count("\n") == (summaries or (code != 0)), (verb, code, err)


def run_as_child(arguments: list[str], out: Path) -> tuple[int, str]:
    """Run a verb in this process, with its output in files."""
    with Path(f"{out}.out").open("wb") as stdout, Path(f"{out}.err").open("w+b") as stderr:
        os.dup2(stdout.fileno(), 1)
        os.dup2(stderr.fileno(), 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        code = main([f"{out}-made" if it == OUT else it for it in arguments])
        sys.stdout.flush()
        sys.stderr.flush()
        stderr.seek(0)
        return code, stderr.read().decode()


def test_a_word_that_is_not_utf8_is_refused(cli: Cli, whole: Path) -> None:
    odd = os.fsdecode(b"a\xff")
    quire.open(whole).tailer("risk").close()
    for command in (
        ("roll-cycles", odd),
        ("roll-cycles", "FAST_DAILY", "--file", odd),
        ("tailers", whole, "--rename", "risk", odd),
    ):
        ran = cli(*command)
        assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
        assert r"expected text in UTF-8, found 'a\udcff'" in ran.err
