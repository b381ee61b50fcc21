"""Rules of the tree that no linter knows; a failure says what to do. `make lint` runs them, too."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import rust_modules
from figures import upward
from paths import ROOT
from python_modules import bound_in, circles, imports, packages, trees

pytestmark = pytest.mark.rule

# The modules of the Rust crates, lowest first; each names only what stands below it, or beside it.
RUST_LAYERS = [
    "quire_wire::codes quire_wire::error",
    "quire_wire::out",
    "quire_wire::compress quire_wire::latin1 quire_wire::number quire_wire::reader",
    "quire_wire::temporal quire_wire::writer",
    "quire_wire::convert quire_wire::fieldless quire_wire::history quire_wire::message",
    "quire_wire::arrow quire_wire::requests quire_wire::text quire_wire::topic",
    "quire_wire::explain",
    "quire_wire",
    "quire_kernel::error quire_kernel::explained quire_kernel::finding quire_kernel::probe",
    "quire_kernel::snapshot quire_kernel::warnings",
    "quire_kernel::os",
    "quire_kernel::memory",
    "quire_kernel::metrics quire_kernel::waiting",
    "quire_kernel::replicas",
    "quire_kernel::chronicle::format quire_kernel::groups::format",
    "quire_kernel::quick_queue::format quire_kernel::vanilla::format",
    "quire_kernel::chronicle::protocol quire_kernel::groups::protocol",
    "quire_kernel::quick_queue::protocol quire_kernel::vanilla::protocol",
    "quire_kernel::sealed::difference quire_kernel::sealed::fields quire_kernel::sealed::numbers",
    "quire_kernel::sealed::cipher quire_kernel::sealed::dictionary quire_kernel::sealed::tree",
    "quire_kernel::sealed::added_keys",
    "quire_kernel::sealed::packed quire_kernel::sealed::packing quire_kernel::sealed::bases",
    "quire_kernel::sealed::layers",
    "quire_kernel::sealed::compressing",
    "quire_kernel::chronicle::queue",
    "quire_kernel::chronicle quire_kernel::quick_queue quire_kernel::vanilla",
    "quire_kernel::groups quire_kernel::sealed",
    "quire_kernel::ring",
    "quire_kernel",
    "quire_binding::document quire_binding::spare",
    "quire_binding::arguments quire_binding::buffer quire_binding::detached quire_binding::repr",
    "quire_binding::error quire_binding::fault_points",
    "quire_binding::cipher",
    "quire_binding::calls::history quire_binding::values",
    "quire_binding::handles::clock quire_binding::handles::column quire_binding::handles::payload",
    "quire_binding::handles::roll_cycle quire_binding::handles::scan quire_binding::handles::spin",
    "quire_binding::handles::waits",
    "quire_binding::arrow quire_binding::groups quire_binding::maintenance",
    "quire_binding::handles quire_binding::macros quire_binding::requests quire_binding::sealed",
    "quire_binding::arrow::infer quire_binding::calls quire_binding::encoded",
    "quire_binding::quick_queue",
    "quire_binding::replica_states quire_binding::replication quire_binding::vanilla",
    "quire_binding",
]
RUST_RANKS = {name: rank for rank, names in enumerate(RUST_LAYERS) for name in names.split()}
# Values hold values: the classes of declared types, what writes them and what reads them.
# A handle of Quick-Queue has its queue, which makes the handle.
# A group makes its members.
RECURSIVE = (
    "quire_kernel::groups::",
    "quire_binding::values::",
    "quire_binding::quick_queue::",
    "quire_kernel::quick_queue::",
)
HANDLES = {
    f"quire.handles.journal.{name}"
    for name in ("queue", "appender", "acknowledging", "tailer", "subtopics")
}
ALIKE = (
    *("quire.cli.verbs.", "quire.formats.", "quire.handles.", "quire.remote.", "quire.vanilla."),
)
MARKDOWN_WIDTH = 120
FENCED = re.compile(r"(?ms)^ *```.*?^ *```$")
MIN_WORDS = 40  # characters of a package's docstring
OWN = {"bench", "demo", "pyspark_quire", "quire"}
BROUGHT_ALONG = {"numpy", "opentelemetry", "yaml"}  # by pandas, opentelemetry-sdk and PyYAML
CRATES = set(rust_modules.FOLDERS.values())  # what their roots declare serves all of their modules


def tracked(*suffixes: str, under: str = ".") -> list[tuple[str, str]]:
    command = ["git", "-c", "safe.directory=*", "ls-files", under]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in names.splitlines() if name.endswith(suffixes)]
    return [(str(p.relative_to(ROOT)), p.read_text("utf-8")) for p in paths if p.exists()]


def test_no_file_is_too_long_to_read() -> None:
    long = [name for name, text in tracked(".py", ".rs") if text.count("\n") > 600]
    assert not long, f"{long} have more than 600 lines: split them by duty"


def test_every_rust_module_has_a_rank_and_names_nothing_above_it() -> None:
    for module, targets in rust_modules.edges().items():
        above = [it for it in targets if rust_rank(it) > rust_rank(module) and it not in CRATES]
        assert not above, f"{module} names {above}, which stand above it: see RUST_LAYERS"


def test_no_circle_of_rust_modules() -> None:
    found = circles(rust_modules.edges())
    circular = [it for it in found if not all(name.startswith(RECURSIVE) for name in it)]
    assert not circular, f"move what both sides need below them: {circular}"


def rust_rank(module: str) -> int:
    """Return a module's rank, which may be that of a folder above it."""
    known = [
        name for name in RUST_RANKS if name not in CRATES and f"{module}::".startswith(f"{name}::")
    ]
    return RUST_RANKS[max(known, key=len) if module not in CRATES else module]


def test_unsafe_stays_where_memory_is_touched() -> None:
    homes = ("crates/kernel/src/memory/", "crates/kernel/src/os/", "crates/binding/src/buffer.rs")
    for name, text in tracked(".rs"):
        is_safe = not re.search(r"(?m)^(?!\s*//).*\bunsafe\b", text)
        assert is_safe or name.startswith(homes), f"{name}: move what is unsafe to one of {homes}"


def test_cited_sections_of_the_format_exist() -> None:
    sections = re.findall(r"(?m)^#+ (\d[\d.]*\d|\d)", (ROOT / "docs/format.md").read_text("utf-8"))
    for name, text in tracked(".rs", ".py", ".pyi"):
        for cited in re.findall(r"format\.md[`\s/!#]*§+([\d., §-]*\d)", text):
            missing = set(re.findall(r"\d[\d.]*\d|\d", cited)) - set(sections)
            assert not missing, f"{name} cites docs/format.md {missing}: see its headings"


def test_every_python_module_has_a_layer() -> None:
    """That imports point down them is checked by import-linter, in `make lint`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    known = tuple(f"quire.{it}." for it in re.findall(r"[\w.]+", " ".join(contract["layers"])))
    unknown = {it for it in trees() if not f"{it}.".startswith(known)} - packages()
    assert not unknown, f"give {unknown} a layer in pyproject.toml, above what they import"


def test_only_what_stands_above_the_package_imports_its_top() -> None:
    above = ("quire.spark.", "quire.pipeline.", "quire.cli.")
    below = [it.importer for it in imports() if it.imported == "quire"]
    below = [it for it in below if not f"{it}.".startswith(above)]
    assert not below, f"{below} import quire: import the modules that have what they need"


def test_python_imports_make_no_circle() -> None:
    edges: dict[str, set[str]] = {}
    for importer, imported, for_annotations in imports():
        if not (for_annotations and {importer, imported} <= HANDLES):
            edges.setdefault(importer, set()).add(imported)
    edges["quire"] = set()  # a module asks the package at its top for what was imported before
    assert circles(edges) == [], "move what both modules need into one below them"


def test_few_imports_point_upward_in_the_map() -> None:
    found = sorted(upward())
    hint = "move what both need into a room below, or a room to its place in docs/design.md"
    assert len(found) <= 8, f"{hint}: {found}"


def test_no_module_is_named_like_a_public_name_of_its_package() -> None:
    """An import of the module would replace the function."""
    for package in packages():
        for name, source in bound_in(package):
            module = f"{package}.{name}"
            hint = f"{source} and the module {module}: name the module after its duty"
            assert module not in trees() or source == module, hint


def test_no_two_modules_share_a_name() -> None:
    """A file of a verb is named after it, one of a format after what each format has."""
    seen: dict[str, str] = {}
    for module in trees():
        name = module.rpartition(".")[2]
        other = seen.setdefault(name, module)
        alike = other == module or f"{module}.".startswith(ALIKE) or f"{other}.".startswith(ALIKE)
        assert alike, f"{other} and {module}: name each after what it alone does"


def test_the_map_names_every_room_and_every_room_says_what_is_in_it() -> None:
    design = (ROOT / "docs/design.md").read_text("utf-8").partition("## 7. Structure")[2]
    drawn = re.findall(r"\w+", design)
    rooms = {module.removeprefix("quire.") for module in trees() if module.count(".") == 1}
    assert not rooms - {*drawn}, "draw them in the map of docs/design.md, section 7"
    for package in packages():
        is_described = len(ast.get_docstring(trees()[package]) or "") > MIN_WORDS
        assert is_described, f"say in the docstring of {package} what is in it"


def test_tests_import_what_their_environment_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    by_name = project["dependency-groups"]
    parts: list[Any] = by_name["test"]
    included: list[str] = [it["include-group"] for it in parts if not isinstance(it, str)]
    groups = [by_name[name] for name in ("test", *included)]
    groups += project["project"]["optional-dependencies"].values()
    lines = [it for names in groups for it in names if isinstance(it, str)]
    packages = {re.split(r"[^\w-]", name)[0] for name in lines}
    texts = tracked(".py", under="tests")
    known = OWN | BROUGHT_ALONG | sys.stdlib_module_names | {Path(name).stem for name, _ in texts}
    for name, text in texts:
        nodes = [*ast.walk(ast.parse(text))]
        used = [it.name for node in nodes if isinstance(node, ast.Import) for it in node.names]
        used += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        tops = {module.split(".")[0] for module in used}
        missing = tops - known - {it.replace("-", "_") for it in packages}
        assert not missing, f"{name} imports {missing}: add to the group `test` of pyproject.toml"


def test_a_page_has_one_title_and_the_lock_file_public_hosts() -> None:
    for name, text in tracked(".md"):
        titles = re.findall(r"(?m)^# ", FENCED.sub("", text))
        assert len(titles) == 1, f"{name} has {len(titles)} titles (`# `): one is right"
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text("utf-8")))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}, "run `.tools/bin/uv lock` again"


def test_lines_of_markdown_fit_a_terminal() -> None:
    """Tables and blocks of code excepted."""
    for name, text in tracked(".md"):
        blank = FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
        wide = enumerate(map(is_wide, blank.splitlines()), 1)
        long = [number for number, is_long in wide if is_long]
        assert not long, f"{name}: break lines {long} at {MARKDOWN_WIDTH} characters"


def is_wide(line: str) -> bool:
    may_be_wide = line.lstrip().startswith("|") or line.startswith("    ")  # a table, code
    return len(line) > MARKDOWN_WIDTH and not may_be_wide


@pytest.mark.check
def test_a_file_of_short_tests_goes_to_one_worker() -> None:
    """Fixtures of a file are made once: pytest-xdist 3.8 loses the groups with pytest 9.2."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-v"]
    ran = subprocess.run(
        [*command, "-p", "no:cacheprovider", "tests/handles/test_public_names.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    workers = re.findall(r"^\[(\w+)\] .* PASSED ", ran.stdout, re.MULTILINE)
    assert len(workers) > 3
    assert len({*workers}) == 1, "pin pytest in pyproject.toml, or set the groups earlier"
