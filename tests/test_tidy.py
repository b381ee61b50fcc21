"""Rules of the tree that no linter knows."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from paths import ROOT

# The kernel, lowest first.
LAYERS = [
    "probe os memory wire chronicle::format quick_queue::format",
    "chronicle::protocol quick_queue::protocol",
    "chronicle quick_queue",
]
HEIGHT = {part: height for height, parts in enumerate(LAYERS) for part in parts.split()}
ON_TOP = {"cli", "replication", "server", "spark"}
BELOW = {"archive", "pages"}
OWN = {"bench", "pyspark_quire", "quire"}
BROUGHT_ALONG = {"numpy"}  # by pandas


def tracked(*suffixes: str, under: str = ".") -> list[tuple[str, str]]:
    command = ["git", "-c", "safe.directory=*", "ls-files", under]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in names.splitlines() if name.endswith(suffixes)]
    return [(str(p.relative_to(ROOT)), p.read_text("utf-8")) for p in paths if p.exists()]


def test_no_file_is_too_long_to_read() -> None:
    assert not [name for name, text in tracked(".py", ".rs") if text.count("\n") > 600]


def test_the_kernel_imports_point_one_way() -> None:
    for name, text in tracked(".rs", under="crates/kernel/src"):
        height = height_of("::".join(Path(name).with_suffix("").parts[3:]), len(LAYERS))
        used = re.findall(r"\bcrate::([\w:]+)", re.sub(r"//.*", "", text))
        assert not [path for path in used if height_of(path, 0) > height], name


def height_of(path: str, unknown: int) -> int:
    layers = [part for part in HEIGHT if f"{path}::".startswith(f"{part}::")]
    return HEIGHT[max(layers, key=len)] if layers else unknown


def test_unsafe_stays_where_memory_is_touched() -> None:
    homes = ("crates/kernel/src/memory/", "crates/kernel/src/os/", "crates/binding/src/buffer.rs")
    for name, text in tracked(".rs"):
        assert name.startswith(homes) or not re.search(r"(?m)^(?!\s*//).*\bunsafe\b", text), name


def test_cited_sections_of_the_format_exist() -> None:
    sections = re.findall(r"(?m)^#+ (\d[\d.]*\d|\d)", (ROOT / "docs/format.md").read_text("utf-8"))
    for name, text in tracked(".rs", ".py", ".pyi"):
        for cited in re.findall(r"format\.md[`\s/!#]*§+([\d., §-]*\d)", text):
            assert set(re.findall(r"\d[\d.]*\d|\d", cited)) <= set(sections), f"{name}: {cited}"


def test_the_parts_on_top_do_not_import_one_another() -> None:
    for name, text in tracked(".py", under="python/quire"):
        part, body = Path(name).parts[2], ast.parse(text)
        for node in body.body if part == "cli" else ast.walk(body):  # verbs import when they run
            imports = ast.unparse(node) if isinstance(node, ast.Import | ast.ImportFrom) else ""
            used = set(re.findall(r"\bquire(?:\.| import )(\w+)", imports)) & ON_TOP - {part}
            assert part not in ON_TOP | BELOW or not used, f"{name}: {imports}"


def test_pages_know_nothing_of_what_they_show() -> None:
    for name, text in tracked(".py", under="python/quire/pages"):
        nodes = [it for it in ast.walk(ast.parse(text)) if isinstance(it, ast.ImportFrom)]
        modules = [it.module or "" for it in nodes if (it.module or "").startswith("quire")]
        assert all(module.startswith("quire.pages") for module in modules), name


def test_tests_import_what_their_environment_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = [project["dependency-groups"]["test"]]
    groups += project["project"]["optional-dependencies"].values()
    packages = {re.split(r"[^\w-]", name)[0] for names in groups for name in names}
    texts = tracked(".py", under="tests")
    known = OWN | BROUGHT_ALONG | sys.stdlib_module_names | {Path(name).stem for name, _ in texts}
    for name, text in texts:
        nodes = [*ast.walk(ast.parse(text))]
        used = [it.name for node in nodes if isinstance(node, ast.Import) for it in node.names]
        used += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        tops = {module.split(".")[0] for module in used}
        assert tops - known <= {it.replace("-", "_") for it in packages}, name


def test_a_page_has_one_title_and_the_lock_file_public_hosts() -> None:
    for name, text in tracked(".md"):
        assert len(re.findall(r"(?m)^# ", re.sub(r"(?ms)^ *```.*?^ *```", "", text))) == 1, name
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text("utf-8")))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}
