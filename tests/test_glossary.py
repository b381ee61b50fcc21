"""The glossary's terms are unique and in use, and words that the project avoids stay out."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from paths import ROOT

pytestmark = pytest.mark.rule

GLOSSARY = ROOT / "docs" / "glossary.md"
TERM = re.compile(r"(?m)^\| ([^|]+) \| ")
CODE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`|^    .*?$|\]\([^)]*\)")
RUST_TEXT = re.compile(
    r"""(?s)b?'(?:[^'\\]|\\.[^']*)'|(//[^\n]*|r(\#*)".*?"\2|"(?:[^"\\]|\\.)*")"""
)
PROSE = ("*.md", "docs/*.md", "docs/performance/*.md")
SOURCES = ("crates/*/src/**/*", "crates/fuzz/src/bin/*", "python/**/*.py", "python/**/*.pyi")
INSTEAD = {  # a pattern of words that have to be decoded, and what to write
    r"tell|tells|telling|told": "say, report, know, distinguish",
    r"whoever|whomever": "the process that, anyone who",
    r"anew": "again",
    r"in front of": "before",
    r"(?<!fall )(?<!falls )(?<!fell )(?<!lag )(?<!lags )(?<!leaves )(?<!left )behind(?!=)": "after",
    r"so many": "n, at most n, the retry limit",
    r"so long(?! as)": "meanwhile, for n seconds",
    r"for as long as": "while, until",
    r"hands? on|handed on": "pass, write",
    r"(?<!\" \")pass(?:es|ed|ing)? over": "skip",  # but as a value that archives keep
    r"no such way": "invalid ...: expected ...",
    r"of what\?": "name what is required: columns= requires schema=",
    r"what is there": "the available data, the existing files",
    r"stands? there": "is stored, name the content",
    r"stretch|stretches": "range",
    r"something else": "name it: other messages, not a directory",
    r"(?:is|are|be) said": "is reported, is logged",
    r"do nothing, or": "raise ... if",
}
AVOIDED = re.compile(
    "|".join(rf"\b(?P<_{number}>{words})(?!\w)" for number, words in enumerate(INSTEAD)),
    re.IGNORECASE,
)
VAGUE = re.compile(  # conditions that only the line above them explains
    r"(?:It|They|One(?! of \*)|Something(?! other)|Nothing|None|Two (?:do|were)|As"
    r"|There (?:is|are) (?:none|one|too many\.))\b"
    r"|[^.,;]* (?:is|are|does|do|neither|cannot be|(?:is|have|of) (?:none|them)|another's)\.$"
)
RAISES = re.compile(r"(?m)^( *)Raises:\n((?:\1 +\S.*\n)+)")


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


@pytest.mark.parametrize("tree", [*PROSE, *SOURCES])
def test_texts_avoid_words_that_are_not_ours(tree: str) -> None:
    files = [path for path in sorted(ROOT.glob(tree)) if path.suffix in TEXTS]
    assert files
    found = [word for path in files for word in avoided(path)]
    assert not found, "\n".join(found)


def avoided(path: Path) -> Iterator[str]:
    for number, line in enumerate(TEXTS[path.suffix](path.read_text("utf-8")), 1):
        for match in AVOIDED.finditer(line):
            instead = [*INSTEAD.values()][int(str(match.lastgroup)[1:])]
            yield f"{path.relative_to(ROOT)}:{number}: `{match[0]}`: write instead: {instead}"


def prose(page: str) -> list[str]:
    return CODE.sub(lambda code: "\n" * code[0].count("\n"), page).splitlines()


def python_texts(source: str) -> list[str]:
    """The comments and strings of each line, and nothing else."""
    lines = [""] * (source.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
            for number, line in enumerate(token.string.splitlines(), token.start[0] - 1):
                lines[number] += f" {line}"
    return lines


def rust_texts(source: str) -> list[str]:
    """The comments and strings of each line, also of strings that go on over several lines."""
    lines = [""] * (source.count("\n") + 1)
    for match in RUST_TEXT.finditer(source):
        first = source.count("\n", 0, match.start())
        for number, line in enumerate((match[1] or "").splitlines(), first):
            lines[number] += f" {line}"
    return lines


TEXTS = {".md": prose, ".py": python_texts, ".pyi": python_texts, ".rs": rust_texts}


def test_the_conditions_of_errors_make_sense_alone() -> None:
    """In an editor's tooltip nothing stands above them."""
    for path in sorted([*ROOT.glob("python/**/*.py"), *ROOT.glob("python/**/*.pyi")]):
        for section in RAISES.finditer(path.read_text("utf-8")):
            conditions = re.findall(r"(?m)^ +[\w.]+: (.+)$", section[2])
            vague = [it for it in conditions if VAGUE.match(it)]
            assert not vague, f"{path.relative_to(ROOT)}: name what fails: {vague}"
