"""The code in the documentation runs, and its links resolve."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT

WHERE = ("*.md", "docs/*.md", "docs/performance/*.md", "interop/README.md")
PAGES = sorted(page for pattern in WHERE for page in ROOT.glob(pattern))
FENCED = re.compile(r"(?ms)^ *```.*?^ *```$")
RUNNABLE = re.compile(r"(?ms)^```(python|console)\n(.*?)^```$")
TWICE = "import runpy, sys\nfor _ in range(2): runpy.run_path(sys.argv[1], run_name='__main__')"
CONSOLE_RUNS_IN = ("README.md",)
NEEDS_A_CLUSTER = ("docs/cluster.md",)
SEEN_FIRST = {"README.md", "docs/start.md", "docs/columns.md", "01_append.py", "02_tail.py"}
NEEDS_A_SERVER = ("docs/remote.md",)  # tests/server/test_remote_page.py


def program_of(page: Path) -> str:
    """
    The Python blocks of a page as one program, each on the lines that it has in the page.

    In `CONSOLE_RUNS_IN` the commands `$ quire ...` between them run too.
    """
    text = page.read_text("utf-8")
    lines = [""] * len(text.splitlines())
    for block in RUNNABLE.finditer(text):
        first = text.count("\n", 0, block.start(2))
        shown = block[2].splitlines()
        if block[1] == "console":
            runs = page.name in CONSOLE_RUNS_IN
            shown = [_as_python(line) if runs else "" for line in shown]
        lines[first : first + len(shown)] = shown
    return "\n".join(lines)


def _as_python(line: str) -> str:
    if not line.startswith("$ quire "):
        return ""
    return f"__import__('subprocess').run({line[2:]!r}, shell=True, check=True)"


PROGRAMS = {str(page.relative_to(ROOT)): program_of(page) for page in PAGES}
SPARK = re.compile(r"quire\.(spark|pipeline)")


def run(command: list[str], where: Path) -> None:
    path = [str(Path(sys.executable).parent), os.environ["PATH"]]
    ran = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=where,
        env=os.environ | {"PATH": os.pathsep.join(path), "TMPDIR": str(where)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def _left_to_check(name: str, program: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a program: `make test` runs those that a newcomer sees first."""
    if SPARK.search(program):
        return [pytest.mark.spark]
    return [] if name in SEEN_FIRST else [pytest.mark.slow]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=_left_to_check(page, program))
        for page, program in PROGRAMS.items()
        if program.strip() and page not in (*NEEDS_A_CLUSTER, *NEEDS_A_SERVER)
    ],
)
def test_the_blocks_of_a_page_run_in_order_in_one_directory_and_again(
    page: str, tmp_path: Path
) -> None:
    program, where = tmp_path / "page.py", tmp_path / "here"
    where.mkdir()
    program.write_text(PROGRAMS[page], "utf-8")

    run(["-c", TWICE, str(program)], where)


def examples() -> list[Path]:
    return sorted(ROOT.glob("examples/[0-9]*.py"))


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=_left_to_check(path.name, path.read_text())) for path in examples()],
    ids=lambda path: path.name,
)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    run([str(example)], tmp_path)


def test_an_example_is_short_and_says_what_it_did(tmp_path: Path) -> None:
    numbers = [int(path.name[:2]) for path in examples()]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert not [path.name for path in examples() if len(path.read_text("utf-8").splitlines()) > 40]

    command = [sys.executable, str(examples()[0])]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "100,003 messages" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", page.read_text("utf-8"))):
        place, _, section = target.partition("#")
        if place.startswith("https://"):
            continue
        found = (page.parent / place).resolve() if place else page
        assert found.exists(), f"{page.name}: {target}"
        assert found.is_relative_to(ROOT), f"{page.name}: {target}"
        assert not section or section in _anchors(found), f"{page.name}: {target}"


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"(?m)^#+ (.+)$", FENCED.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
