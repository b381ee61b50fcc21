"""`quire convert`: what it prints, its exit codes, and an interrupt."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_runs import Cli, run
from converted import fill, messages, payloads
from quire.cli.output.progress import Progress

DAYS = [[b"one", b"two"], [b"", b"three"]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    fill(tmp_path / "source", "vanilla", DAYS)
    return tmp_path / "source"


def test_a_conversion_as_a_process(source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    ran = run("convert", source, dest, "--into", "parquet")
    assert (ran.code, ran.err) == (0, "")
    last = messages(source)[-1][0]
    assert ran.out == f"written=4 last={last:#x}\n"
    assert payloads(messages(dest)) == [b"one", b"two", b"", b"three"]


def test_what_was_there_and_what_was_skipped_is_shown(
    cli: Cli, source: Path, tmp_path: Path
) -> None:
    dest = tmp_path / "dest"
    ran = cli("convert", source, dest, "--into", "quick-queue")
    assert (ran.code, ran.out) == (1, "")
    index = messages(source)[2][0]
    assert ran.err.startswith(
        f"quire: the format cannot hold a message: index={index:#x} length=0 limits=1..2147483647"
    )
    ran = cli.ok("convert", source, dest, "--into", "quick-queue", "--skip")
    assert ran.out == "written=1 there=2 skipped=1 last=0x20\n"
    ran = cli.ok("convert", source, dest, "--into", "quick-queue", "--skip")
    assert ran.out == "written=0 there=3 skipped=1 last=0x20\n"


def test_wrong_options_are_usage_errors(cli: Cli, source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    assert cli("convert", source, dest).code == 2
    assert cli("convert", source, dest, "--into", "kafka").code == 2
    ran = cli("convert", source, dest, "--into", "quick-queue", "--roll-cycle", "FAST_DAILY")
    assert ran.code == 2
    assert "the format has no cycles: into=quick-queue roll_cycle=FAST_DAILY" in ran.err
    assert cli("convert", source, source, "--into", "chronicle").code == 2
    assert not dest.exists()


def test_a_directory_with_something_else_is_a_failure(
    cli: Cli, source: Path, tmp_path: Path
) -> None:
    ran = cli("convert", source, tmp_path, "--into", "vanilla")
    assert (ran.code, ran.out) == (1, "")
    assert "not the result of a conversion" in ran.err


def test_an_interrupted_conversion_says_how_to_resume_it(
    cli: Cli, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dest = tmp_path / "dest"

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "show", interrupted)
        ran = cli("convert", source, dest, "--into", "vanilla")
    assert (ran.code, ran.err) == (130, "quire: interrupted: repeat the command to resume\n")
    ran = cli.ok("convert", source, dest, "--into", "vanilla")
    assert ran.out.startswith("written=2 there=2 ")
