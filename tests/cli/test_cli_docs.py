"""
What docs/cli.md shows is what the commands print.

As a program this file writes the page anew: `.venv/bin/python tests/cli/test_cli_docs.py`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from paths import ROOT
from quire.cli.verb_group import VERBS, quire

PAGE = ROOT / "docs/cli.md"
PYTHON = re.compile(r"(?ms)^```python\n(.*?)^```$")
CONSOLE = re.compile(r"(?ms)^```console\n(.*?)^```$")
COMMAND = re.compile(r"(?m)^\$ (.+)$")
HELP = re.compile(r"quire( [a-z-]+)* --help")
COLUMNS = 100

# What the day, the disk and the process decide: the cycle of an index and of a file written now,
# what is on disk, and how wide that is.
OF_THE_DAY = (
    (re.compile(r"0x[0-9a-f]+([0-9a-f]{8})\b"), r"0x…\1"),
    (re.compile(r"\b\d{8}F\.cq4\b"), "…F.cq4"),
    (re.compile(r"\d+\.\d [KMG]iB"), "… iB"),
    (re.compile(r"[ -]{2,}"), " "),
)


def alike(text: str) -> str:
    for pattern, instead in OF_THE_DAY:
        text = pattern.sub(instead, text)
    return text


def prepared(page: str, where: Path) -> dict[str, str]:
    """Make what the page's Python makes; the environment of its commands."""
    (program,) = PYTHON.findall(page)
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=where, check=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {name: it for name, it in os.environ.items() if not name.startswith("QUIRE_")}
    return own | {"PATH": path, "COLUMNS": str(COLUMNS)}


def help_of(command: str) -> str | None:
    """What a command says of its options; a process for each of them would take a minute."""
    if HELP.fullmatch(command) is None:
        return None
    arguments = shlex.split(command)[1:]
    width = COLUMNS - 2  # as click takes it from a terminal; its runner takes another one
    ran = CliRunner().invoke(quire, arguments, prog_name="quire", terminal_width=width)
    assert ran.exit_code == 0, ran.output
    return ran.output


def output_of(command: str, where: Path, environment: dict[str, str]) -> str:
    """What a command prints, as a shell runs it."""
    return subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=where,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout


def renewed(page: str, where: Path) -> str:
    """The page with what its commands print here and now."""
    environment = prepared(page, where)

    def block(found: re.Match[str]) -> str:
        shown: list[str] = []
        for command in COMMAND.findall(found[1]):
            printed = help_of(command) or output_of(command, where, environment)
            shown.append(f"$ {command}\n{printed.replace(f'{where}/', '')}")
        return f"```console\n{''.join(shown)}```"

    return CONSOLE.sub(block, page)


@pytest.mark.slow
def test_the_page_shows_what_the_commands_print(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    assert alike(renewed(page, tmp_path)) == alike(page)


def test_the_summary_of_each_verb_fits_one_line_of_help() -> None:
    context = click.Context(quire, info_name="quire", max_content_width=100, terminal_width=100)
    names = [*VERBS]
    lines = quire.get_help(context).splitlines()
    start = lines.index("Commands:")
    assert [line.split()[0] for line in lines[start + 1 :] if line] == sorted(names)


def test_every_verb_is_documented_with_its_help_and_an_example() -> None:
    commands = COMMAND.findall("\n".join(CONSOLE.findall(PAGE.read_text("utf-8"))))
    for verb in VERBS:
        assert f"quire {verb} --help" in commands, verb
        shown = [it for it in commands if f"quire {verb} " in it and "--help" not in it]
        assert shown, verb


def test_the_table_of_verbs_has_each_of_them_once() -> None:
    page = PAGE.read_text("utf-8")
    rows = re.findall(r"(?m)^\| \[`([a-z-]+)`\]\(#([a-z-]+)\) \|", page)
    assert sorted(rows) == [(verb, verb) for verb in sorted(VERBS)]
    assert {*VERBS} <= {*re.findall(r"(?m)^#+ `?(?:quire )?([a-z-]+)`?$", page)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        PAGE.write_text(renewed(PAGE.read_text("utf-8"), Path(directory)), "utf-8")
