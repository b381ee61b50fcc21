"""`quire jitter`: pauses of a spinning loop, and stacks of a late program."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli_runs import Cli, run
from quire.cli.verbs import jitter

PROGRAM = """
import sys, threading, time
import quire.testing

def waiting():
    while not any("waiting" in str(it) for it in sampler.stacks): time.sleep(0.001)

thread = next(it for it in threading.enumerate() if it.name == "quire-stacks")
sampler = thread._target.__self__  # goes on once it was sampled, however slow the machine is
quire.testing.beat()
waiting()
print(__name__, sys.argv[1:])
sys.exit(3)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_pauses_are_counted_by_length(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [12_000, 15_000, 40_000, 1_100_000]

    def spin(_seconds: float, _least_us: int) -> jitter.Pauses:
        return jitter.Pauses(2.0, found)

    monkeypatch.setattr(jitter, "spin", spin)
    rows = json.loads(cli.ok("jitter", "--format", "json").out)
    assert [(it["from_us"], it["to_us"], it["pauses"]) for it in rows] == [
        (8, 16, 2),
        (16, 32, 0),
        (32, 64, 1),
        *((1 << power, 2 << power, 0) for power in range(6, 10)),
        (1024, 2048, 1),
    ]
    assert (rows[0]["per_second"], rows[0]["longest_us"]) == (1.0, 15.0)
    assert rows[1]["longest_us"] is None


def test_a_loop_spins_for_as_long_as_asked() -> None:
    pauses = jitter.spin(0.05, 1)
    assert pauses.seconds >= 0.05
    assert min(pauses.found_ns, default=1000) >= 1000


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="not of this system")
def test_a_cpu_can_be_chosen() -> None:
    cpu = min(os.sched_getaffinity(0))
    assert run("jitter", "--seconds", "0.01", "--cpu", str(cpu)).code == 0
    ran = run("jitter", "--seconds", "0.01", "--cpu", "99999")
    assert ran.code == 2
    assert "this CPU cannot be used: cpu=99999" in ran.err


def test_the_stacks_of_a_late_program_are_shown(program: Path) -> None:
    ran = run("jitter", "--interval", "1000", "--", program, "one", "--two")
    assert (ran.code, ran.err) == (3, "")
    first, heading, *_ = ran.out.splitlines()
    assert first == "__main__ ['one', '--two']"
    assert heading.startswith("late in ")
    assert f"{program}:6 in waiting\n  {program}:11 in <module>\n" in ran.out
    assert "runpy" not in ran.out


def test_stacks_are_rows_in_other_formats(program: Path) -> None:
    ran = run("jitter", "--format", "jsonl", "--", program)
    rows = [json.loads(line) for line in ran.out.splitlines()[1:]]
    assert any("in waiting" in it["stack"] for it in rows)
    counts = [it["samples"] for it in rows]
    assert counts == sorted(counts, reverse=True)
    assert 0 < rows[0]["share"] <= 1


def test_a_program_that_fails_is_shown_as_python_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("raise LookupError('no such order')")
    ran = run("jitter", "--", path)
    assert ran.code == 1
    assert "LookupError: no such order" in ran.err
    assert "late in" in ran.out
    path.write_text("import sys; sys.exit('stopped')")
    ran = run("jitter", "--", path)
    assert (ran.code, ran.err) == (1, "stopped\n")


def test_a_module_is_a_program_too() -> None:
    ran = run("jitter", "--", "-m", "this")
    assert ran.code == 0
    assert "Beautiful is better than ugly." in ran.out


def test_what_cannot_be_run_is_refused(cli: Cli, tmp_path: Path) -> None:
    for arguments, why in (
        (["--", tmp_path / "none.py"], "no such Python program: path="),
        (["--", "-m"], "-m needs the name of a module"),
        (["--interval", "49", "--", tmp_path], "49 is not in the range x>=50"),
    ):
        ran = cli("jitter", *arguments)
        assert ran.code == 2
        assert why in ran.err
