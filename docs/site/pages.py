"""Pages of the site that lie outside ``docs/``, and links between them as they are on the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "bench/METHOD.md": "measuring.md",
    "interop/README.md": "interop.md",
}
"""Where a file of the repository is on the site; what lies in ``docs/`` keeps its place."""

OTHERS = {
    "LICENSE": "license.txt",
    "examples": "examples.md",
    "examples/pipelines": "examples.md#pipelines",
}
HOME = {on_site: path for path, on_site in PAGES.items()}

FENCED = re.compile(r"(?ms)(^ *```.*?^ *```$)")
EXAMPLE = re.compile(r"examples/\d+_(\w+)\.py")
HEX_BLOCK = re.compile(r"(?m)^```hex file=(\S+)$")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside ``docs/``."""
    for path, on_site in PAGES.items():
        files.append(File.generated(config, on_site, content=(ROOT / path).read_text("utf-8")))
    files.append(File.generated(config, "examples.md", content=_examples()))
    files.append(File.generated(config, "license.txt", abs_src_path=str(ROOT / "LICENSE")))
    shim = str(ROOT / "docs/site/iframe-worker.js")
    files.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=shim))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links between files of the repository to links between pages."""
    del config, files
    markdown = HEX_BLOCK.sub(r'```text title="tests/golden/\1"', markdown)
    here = page.file.src_uri
    source = HOME.get(here, f"docs/{here}")
    parts = FENCED.split(markdown)  # text, block, text, ...
    parts[::2] = [LINK.sub(lambda it: _on_site(it, source, here), text) for text in parts[::2]]
    return "".join(parts)


def _on_site(link: re.Match[str], source: str, here: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
    on_site = PAGES.get(target) or OTHERS.get(target)
    if example := EXAMPLE.fullmatch(target):
        on_site = f"examples.md#{example[1].replace('_', '-')}"
    if on_site is None and target.startswith("docs/"):
        on_site = target.removeprefix("docs/")
    if on_site is None:
        return link[0]  # the build says that there is no such page
    return posixpath.relpath(on_site, posixpath.dirname(here) or ".") + (link[2] or "")


def _examples() -> str:
    """Return a page of the programs in ``examples/``."""
    parts = ["# Examples\n\nEach is a whole program, and the tests run it.\n"]
    for path in sorted((ROOT / "examples").glob("[0-9]*.py")):
        title = path.stem[3:].replace("_", " ").capitalize()
        parts.append(f"## {title}\n\n{_listing(path)}")
    parts.append("## Pipelines\n")
    files = sorted((ROOT / "examples/pipelines").glob("*/*.[py]*"))
    parts += [f"### {path.parent.name}: {path.name}\n\n{_listing(path)}" for path in files]
    return "\n".join(parts)


def _listing(path: Path) -> str:
    language = {".py": "python", ".yaml": "yaml"}[path.suffix]
    return f"`{path.relative_to(ROOT)}`\n\n```{language}\n{path.read_text('utf-8')}```\n"
