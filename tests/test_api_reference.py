"""Every public name has a page of the reference; functions and classes have examples that run."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import quire
from paths import ROOT, SUPPORT
from queues import START_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rule

MODULES = [
    "quire",
    "quire.archive",
    "quire.logging",
    "quire.metrics",
    "quire.pages",
    "quire.pausers",
    "quire.recording",
    "quire.recording.websocket",
    "quire.testing",
    "quire.types",
]
ON_SPARK = ["quire.pipeline", "quire.spark"]
SHOWN_WHOLE = ("quire.errors",)  # with all its names, one of which `quire` has too
SHOWN_BY_NAME = [
    "calls",
    "converting",
    "indexed",
    "maintenance",
    "quick_queue",
    "retaining",
    "vanilla",
]
INTERNAL = {  # what other modules of the package need of a Schema, and of a rule
    f"quire.Schema.{name}"
    for name in ("batches", "calls", "content", "of_content", "plan", "shape", "types", "union")
} | {"quire.Retention.limits", "quire.Retention.watch"}
INDENTED = re.compile(r"\n\n    \S")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHOWN = {
    name
    for page in (ROOT / "docs/reference").glob("*.md")
    for name in re.findall(r"(?m)^::: (\S+)$", page.read_text("utf-8"))
}


@dataclass
class Entry:
    """A public name and its docstring, in the class or module that it belongs to."""

    name: str
    docstring: str
    owner: Entry | None = None

    @property
    def examples(self) -> list[doctest.Example]:
        return doctest.DocTestParser().get_examples(self.docstring, self.name)

    @property
    def has_example(self) -> bool:
        """Whether it has one of its own, or is used in those of what it belongs to."""
        word = re.compile(rf"\b{self.name.rpartition('.')[2]}\b")
        others = self.owner.examples if self.owner else []
        own = bool(self.examples) or bool(INDENTED.search(self.docstring))
        return own or any(word.search(other.source) for other in others)

    @property
    def is_shown(self) -> bool:
        return self.name in SHOWN - {"quire"} or bool(self.owner and self.owner.is_shown)


def entries(module: str) -> Iterator[Entry]:
    """The public names of a module, and the members of classes that its methods return."""
    home = importlib.import_module(module)
    top = _module(module)
    yield top
    for name in home.__all__:
        owners = [it for it in SHOWN_WHOLE if hasattr(importlib.import_module(it), name)]
        owner = _module(owners[0]) if owners and module == "quire" else top
        yield from _entries(f"{module}.{name}", getattr(home, name), owner)
    for path in SHOWN if module == "quire" else ():
        place, _, name = path.rpartition(".")
        if place not in {"", *MODULES, *ON_SPARK} and path not in MODULES + ON_SPARK:
            yield from _entries(path, getattr(importlib.import_module(place), name), None)


def _module(name: str) -> Entry:
    return Entry(name, inspect.getdoc(importlib.import_module(name)) or "")


def _entries(path: str, value: object, owner: Entry | None) -> Iterator[Entry]:
    if inspect.ismodule(value) or path == "quire.__version__":
        return
    documents = inspect.isroutine(value) or inspect.isclass(value)
    entry = Entry(path, (inspect.getdoc(value) if documents else None) or "", owner)
    yield entry
    if inspect.isclass(value) and not issubclass(value, BaseException):
        for name in _own_members(value):
            if f"{path}.{name}" not in INTERNAL:
                yield Entry(f"{path}.{name}", inspect.getdoc(getattr(value, name)) or "", entry)


def _own_members(value: type) -> list[str]:
    """The public members, without what a tuple or an enum has, and fields."""
    bases = [base for base in value.__mro__ if base.__module__.startswith("quire")]
    names = {name for base in bases for name in vars(base) if not name.startswith("_")}
    fields = {*getattr(value, "_fields", ()), *getattr(value, "__dataclass_fields__", ())}
    return sorted(names - fields)


@pytest.mark.parametrize("module", MODULES + ON_SPARK)
def test_every_public_name_has_an_example_and_a_place(module: str) -> None:
    for entry in entries(module):
        is_member = entry.owner is not None and entry.owner.name != module
        needs_example = not is_member and not entry.name.endswith("Error")
        assert entry.has_example or not needs_example, f"{entry.name}: its docstring has no example"
        is_placed = entry.is_shown or entry.name in MODULES + ON_SPARK
        assert is_placed, f"add `::: {entry.name}` to a page in docs/reference/"


@pytest.mark.parametrize("room", SHOWN_BY_NAME)
def test_every_name_of_a_room_has_a_place(room: str) -> None:
    names = {f"quire.{room}.{name}" for name in importlib.import_module(f"quire.{room}").__all__}
    assert not names - SHOWN, "add `::: NAME` of these to a page in docs/reference/"


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str, tmp_path: Path) -> None:
    # A process of its own: the classes that examples and other tests register stay registered.
    command = [sys.executable, __file__, module, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, ""), ran.stdout + ran.stderr


@pytest.mark.spark
@pytest.mark.parametrize("module", ON_SPARK)
def test_examples_on_spark_run(module: str, tmp_path: Path, spark: SparkSession) -> None:
    failures = _failures(module, tmp_path, spark=spark)
    assert not failures, failures


def _failures(module: str, tmp_path: Path, **names: object) -> str:
    said: list[str] = []
    for number, entry in enumerate(entries(module)):
        folder = tmp_path / str(number)
        folder.mkdir()
        if entry.examples:
            said.append(_run(entry, folder, names))
    assert said
    return "".join(said)


def _run(entry: Entry, folder: Path, names: dict[str, object]) -> str:
    """Run examples as they all begin: with an empty queue, its appender, and a tailer of it."""
    said: list[str] = []
    clock = quire.ManualClock(START_MS)
    with (
        contextlib.chdir(folder),
        quire.open("orders", clock=clock) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        given = {"quire": quire, "queue": queue, "appender": appender, "tailer": tailer}
        test = doctest.DocTest(
            entry.examples, names | given, entry.name, None, None, entry.docstring
        )
        doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=said.append)
    return "".join(said)


if __name__ == "__main__":
    sys.stdout.write(_failures(sys.argv[1], Path(sys.argv[2])))
