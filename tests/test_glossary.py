"""The glossary's terms are unique and in use, and words that the project avoids stay out."""

import re
from pathlib import Path

import pytest

from paths import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
TERM = re.compile(r"(?m)^\| ([^|]+) \| ")
CODE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`|^    .*?$|\]\([^)]*\)")
PROSE = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "docs/*.md")
AVOIDED = re.compile(
    r"""\b(
        tell|tells|telling|told        # say, report, know
      | whoever|whomever|anew          # anyone who; again
      | in\ front\ of                  # before
      | (?<!fall\ )(?<!falls\ )(?<!fell\ )(?<!lags\ )behind   # after
      | so\ many                       # at most n, n
      | hands?\ on|handed\ on          # pass
      | no\ such\ way                  # invalid
      | what\ is\ there                # the available data
      | pass(es|ed)?\ over             # skip
      | stretch|stretches              # range
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)


def terms() -> list[str]:
    return TERM.findall(GLOSSARY.read_text("utf-8"))[1:]


def test_each_term_has_one_entry_in_alphabetical_order() -> None:
    assert len(terms()) > 60
    assert terms() == sorted(set(terms()), key=str.lower)


def test_the_terms_are_in_use() -> None:
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/quire/**/*.py")]
    sources += [*ROOT.glob("python/quire/*.pyi"), ROOT / "README.md"]
    sources += [page for page in ROOT.glob("docs/*.md") if page != GLOSSARY]
    used = plain(" ".join(path.read_text("utf-8") for path in sources))

    unused = [
        term for term in terms() if not all(plain(word) in used for word in re.split(r"[()]", term))
    ]
    assert not unused


def plain(words: str) -> str:
    """Written the same in prose, `snake_case` and `CamelCase`."""
    return re.sub(r"[\s_-]", "", words).lower()


def pages() -> list[Path]:
    return [page for pattern in PROSE for page in sorted(ROOT.glob(pattern))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_prose_avoids_words_that_are_not_ours(page: Path) -> None:
    prose = CODE.sub(lambda code: "\n" * code[0].count("\n"), page.read_text("utf-8"))
    found = [
        f"{page.name}:{number}: {match[0]}"
        for number, line in enumerate(prose.splitlines(), 1)
        for match in AVOIDED.finditer(line)
    ]
    assert not found
