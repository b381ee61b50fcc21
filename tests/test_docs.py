"""What the documents show runs, what they name exists, and what they link to is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "interop/README.md"])
PAGES_THAT_RUN = (
    "README.md",
    "docs/archive.md",
    "docs/columns.md",
    "docs/messages.md",
    "docs/methods.md",
    "docs/pipeline-examples.md",
    "docs/pipelines.md",
    "docs/replay.md",
    "docs/services.md",
    "docs/sinks.md",
    "docs/spark.md",
    "docs/streaming.md",
)
IN_ONE_SESSION = ("docs/sinks.md",)
FENCED = re.compile(r"(?ms)^ *```.*?^ *```$")


def python_blocks() -> list[tuple[str, str]]:
    """
    The name and the text of each block: the name is its page and the line it starts on.

    Those of a page in `IN_ONE_SESSION` run one behind the other: starting Spark takes seconds.
    """
    found: dict[str, str] = {}
    for page in PAGES_THAT_RUN:
        text, first = (ROOT / page).read_text("utf-8"), ""
        for block in re.finditer(r"(?ms)^```python\n(.*?)^```$", text):
            name = f"{page}:{len(text[: block.start()].splitlines()) + 1}"
            if page in IN_ONE_SESSION:
                name = first = first or name
            found[name] = found.get(name, "") + block[1]
    return [*found.items()]


def programs() -> list[tuple[str, str]]:
    examples = sorted(ROOT.glob("examples/[0-9]*.py"))
    return python_blocks() + [(f"examples/{p.name}", p.read_text("utf-8")) for p in examples]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            program,
            id=name,
            marks=pytest.mark.spark if re.search(r"quire\.(spark|pipeline)", program) else (),
        )
        for name, program in programs()
    ],
)
def test_what_the_documents_show_runs(program: str, tmp_path: Path) -> None:
    program = program.replace('"/tmp/', f'"{tmp_path}/')  # leaves nothing behind

    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr


def test_an_example_is_short_and_says_what_it_did(tmp_path: Path) -> None:
    examples = sorted(ROOT.glob("examples/[0-9]*.py"))
    assert [int(path.name[:2]) for path in examples] == [*range(1, len(examples) + 1)]
    assert not [path.name for path in examples if len(path.read_text("utf-8").splitlines()) > 40]

    command = [sys.executable, str(examples[0])]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "100,003 messages" in said
    assert not list(tmp_path.iterdir())


def test_the_words_of_the_glossary_are_in_use() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/quire/**/*.py*")]
    sources += [page for page in PAGES if page.name != "glossary.md"]
    used = _plain(" ".join(path.read_text("utf-8") for path in sources if path.suffix != ".pyc"))

    terms = re.findall(r"(?m)^\| ([^|]+) \| ", glossary)[1:]
    assert len(terms) > 40
    for term in terms:
        for word in re.sub(r"[()]", "|", term).split("|"):
            assert _plain(word) in used, term


def _plain(words: str) -> str:
    """Written alike in prose, `snake_case` and `CamelCase`."""
    return re.sub(r"[\s_-]", "", words).lower()


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
