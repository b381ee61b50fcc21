"""What there is to learn of Quire, in figures: ``make figures ARGS="--since COMMIT"``."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import quire
from paths import ROOT
from python_modules import Import, circles, imports

CODE: Final = {
    "package": ("python", (".py",)),
    "stub": ("python", (".pyi",)),
    "crates": ("crates", (".rs",)),
    "tests": ("tests", (".py",)),
}
ROOMS: Final = (
    "quire",
    "quire.archive",
    "quire.calls",
    "quire.converting",
    "quire.errors",
    "quire.indexed",
    "quire.maintenance",
    "quire.metrics",
    "quire.quick_queue",
    "quire.recording",
    "quire.retaining",
    "quire.types",
    "quire.vanilla",
)
_DRAWN: Final = 40  # columns of the map in the design that hold names
LATE: Final = "quire"  # what stands above the rest asks the package at its top for its names
PROFILED: Final = """
import json, sys
from quire.cli import main
files, importing = set(), 0
def seen(frame, event, _):
    global importing
    code = frame.f_code
    if code.co_name == "<module>":
        importing += {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and not importing and "/quire/" in code.co_filename:
        files.add(code.co_filename)
sys.setprofile(seen)
main(sys.argv[1:])
sys.setprofile(None)
print(json.dumps(sorted(files)), file=sys.stderr)
"""


def lines_of(folder: str, suffixes: tuple[str, ...], commit: str | None = None) -> int:
    """Return how many lines the tracked files of a folder have, now or at a commit."""
    if commit is None:
        names = _git("ls-files", folder).splitlines()
        paths = [ROOT / name for name in names if name.endswith(suffixes)]
        return sum(path.read_bytes().count(b"\n") for path in paths if path.is_file())
    patterns = [f"*{suffix}" for suffix in suffixes]
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the tree without files
    counted = _git("diff", "--numstat", empty, commit, "--", *(f"{folder}/{it}" for it in patterns))
    return sum(int(line.split("\t")[0]) for line in counted.splitlines() if line[0] != "-")


def entered(*options: str) -> list[str]:
    """Return the files of the package whose functions run in ``quire read`` of a small queue."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "queue")
        with quire.open(path) as queue, queue.appender() as appender:
            for price in range(5):
                appender.write_map({"price": price})
        command = [sys.executable, "-c", PROFILED, "read", str(path), *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        ran = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return found


def rooms() -> dict[str, int]:
    """Return the rooms of the package, and in which line of the map in the design each stands."""
    design = (ROOT / "docs/design.md").read_text("utf-8").partition("## 7. Structure")[2]
    drawn = design.split("```")[1].splitlines()[1:]
    lines = [line[:_DRAWN].split() for line in drawn]
    return {name: number for number, names in enumerate(lines) for name in names}


def upward() -> set[tuple[str, str]]:
    """
    Return the imports of what stands above the importer, as pairs of modules.

    Those inside functions and for annotations count as all others do. Between two rooms the map
    decides; within one, an import is upward if what it imports imports the importer.
    """
    heights = rooms()
    below: dict[str, set[str]] = {}
    for it in imports():
        if not it.for_annotations and it.importer != LATE:
            below.setdefault(it.importer, set()).add(it.imported)
    found = set[tuple[str, str]]()
    for it in imports():
        if LATE in {it.importer, it.imported}:
            continue
        importer, imported = (name.split(".")[1] for name in it[:2])
        if importer == imported:
            is_upward = it.for_annotations and it.importer in _reached(it, below)
        else:
            is_upward = heights[imported] >= heights[importer]
        if is_upward:
            found.add((it.importer, it.imported))
    return found


def circles_of_imports() -> list[list[str]]:
    """Return the circles of the imports that run."""
    edges: dict[str, set[str]] = {}
    for importer, imported, for_annotations in imports():
        if not for_annotations and importer != LATE:
            edges.setdefault(importer, set()).add(imported)
    return circles(edges)


def calls() -> Iterator[tuple[str, int]]:
    """Yield the public functions and methods, and how many parameters each has."""
    for room in ROOMS:
        home = importlib.import_module(room)
        for name in home.__all__:
            value = getattr(home, name)
            if inspect.isclass(value):
                yield from _methods(f"{room}.{name}", value)
            elif callable(value):
                yield f"{room}.{name}", parameters_of(value)


def parameters_of(call: Callable[..., object]) -> int:
    """Return the number of parameters, without ``self``; keywords of a TypedDict count singly."""
    try:
        found = inspect.signature(call).parameters
    except ValueError:  # a native class without a constructor
        return 0
    module = inspect.getmodule(inspect.unwrap(call))
    return sum(
        _width(it, vars(module) if module else {}) for name, it in found.items() if name != "self"
    )


def _width(parameter: inspect.Parameter, names: Mapping[str, Any]) -> int:
    text = str(parameter.annotation)
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD or not text.startswith("Unpack["):
        return 1
    options = names.get(text.removeprefix("Unpack[").removesuffix("]"))
    return len(getattr(options, "__annotations__", ())) or 1


def _is_result(kind: type) -> bool:
    """Whether users get objects of a class, such as handles, and make none."""
    is_value = hasattr(kind, "__dataclass_fields__") or issubclass(kind, BaseException | tuple)
    return is_value or issubclass(kind, quire.Queue | quire.Appender | quire.Tailer)


def _methods(path: str, kind: type) -> Iterator[tuple[str, int]]:
    if not _is_result(kind):
        yield path, parameters_of(kind)
    for name in dir(kind):
        if not name.startswith("_") and callable(value := getattr(kind, name)):
            yield f"{path}.{name}", parameters_of(value)


def _reached(start: Import, below: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    left = [start.imported]
    while left:
        for module in below.get(left.pop(), set()) - seen:
            seen.add(module)
            left.append(module)
    return seen


def _git(*arguments: str) -> str:
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def figures(since: str | None = None) -> Iterator[str]:
    """
    Yield each figure in a line.

    Args:
        since: A commit; the lines are compared with those that it had.

    """
    for name, (folder, suffixes) in CODE.items():
        now = lines_of(folder, suffixes)
        change = f" ({now - lines_of(folder, suffixes, since):+,} since {since})" if since else ""
        yield f"lines of {name}: {now:,}{change}"
    yield f"files entered by `quire read --last 2`: {len(entered('--last', '2'))}"
    conditions = entered("--last", "2", "--where", "price > 1")
    yield f"files entered with `--where`: {len(conditions)}"
    yield f"circles of imports: {len(circles_of_imports())}"
    yield f"imports that point upward: {len(upward())}"
    yield f"public names: {len(quire.__all__)}"
    widths = dict(calls())
    yield f"parameters of quire.open: {widths.pop('quire.open')}"
    for name, count in sorted(widths.items(), key=lambda it: -it[1])[:5]:
        yield f"parameters of {name}: {count}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--since", metavar="COMMIT", help="compare the lines with those of a commit"
    )
    for line in figures(parser.parse_args().since):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
