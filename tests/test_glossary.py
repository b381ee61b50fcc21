"""The glossary's terms are unique and in use, and words that the project avoids stay out."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from paths import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
TERM = re.compile(r"(?m)^\| ([^|]+) \| ")
CODE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`|^    .*?$|\]\([^)]*\)")
RUST_TEXT = re.compile(r'//.*|"(?:[^"\\]|\\.)*"')
PROSE = ("*.md", "docs/*.md", "docs/performance/*.md")
# The trees whose comments and texts are in these words already; add one as it gets there.
SOURCES = (
    "crates/binding/src/**/*",
    "crates/fuzz/src/bin/*",
    "crates/kernel/src/*",
    "crates/kernel/src/chronicle/append/*",
    "crates/kernel/src/chronicle/append/appender/*",
    "crates/kernel/src/chronicle/format/*",
    "crates/kernel/src/chronicle/protocol/*",
    "crates/kernel/src/chronicle/protocol/table/*",
    "crates/kernel/src/chronicle/queue/*",
    "crates/kernel/src/chronicle/read/*",
    "crates/kernel/src/chronicle/read/tailer/*",
    "crates/kernel/src/memory/*",
    "crates/kernel/src/os/*",
    "crates/kernel/src/probe/*",
    "crates/kernel/src/quick_queue/**/*",
    "crates/kernel/src/vanilla/**/*",
    "crates/wire/src/**/*",
    "python/quire/*",
    "python/quire/calls/*",
    "python/quire/pages/*",
    "python/quire/pipeline/*",
    "python/quire/pipeline/runtime/sinks/*",
    "python/quire/pipeline/spec/*",
    "python/quire/services/*",
    "python/quire/spark/*",
    "python/quire/spark/read/*",
    "python/quire/spark/sessions/*",
    "python/quire/spark/write/*",
)
AVOIDED = re.compile(
    r"""\b(
        tell|tells|telling|told        # say, report, know
      | whoever|whomever|anew          # anyone who; again
      | in\ front\ of                  # before
      | (?<!fall\ )(?<!falls\ )(?<!fell\ )(?<!lag\ )(?<!lags\ )(?<!leaves\ )(?<!left\ )
        behind                         # after
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


@pytest.mark.parametrize("tree", [*PROSE, *SOURCES])
def test_texts_avoid_words_that_are_not_ours(tree: str) -> None:
    files = [path for path in sorted(ROOT.glob(tree)) if path.suffix in TEXTS]
    assert files
    assert not [word for path in files for word in avoided(path)]


def avoided(path: Path) -> Iterator[str]:
    for number, line in enumerate(TEXTS[path.suffix](path.read_text("utf-8")), 1):
        for match in AVOIDED.finditer(line):
            yield f"{path.relative_to(ROOT)}:{number}: {match[0]}"


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
    return [" ".join(RUST_TEXT.findall(line)) for line in source.splitlines()]


TEXTS = {".md": prose, ".py": python_texts, ".pyi": python_texts, ".rs": rust_texts}
