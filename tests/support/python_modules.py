"""The modules of ``python/quire`` and what each imports, read from their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from paths import ROOT

PYTHON = ROOT / "python"
NATIVE = "quire._native"


class Import(NamedTuple):
    """An import of one module of the package by another."""

    importer: str
    imported: str
    for_annotations: bool


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each module, by its dotted name."""
    found: dict[str, ast.Module] = {}
    for file in sorted((PYTHON / "quire").rglob("*.py")):
        parts = file.relative_to(PYTHON).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text("utf-8"))
    return found


@cache
def packages() -> frozenset[str]:
    """Return the names of the packages."""
    files = (PYTHON / "quire").rglob("__init__.py")
    return frozenset(".".join(file.parent.relative_to(PYTHON).parts) for file in files)


@cache
def imports() -> tuple[Import, ...]:
    """Return every import inside the package, those within functions included."""
    return tuple(
        Import(module, imported, for_annotations)
        for module, tree in trees().items()
        for imported, for_annotations in _imports_in(tree, module)
    )


def bound_in(package: str) -> Iterator[tuple[str, str]]:
    """Yield the public names that a package's ``__init__`` binds, and where each comes from."""
    for node in trees()[package].body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, f"{package}.{node.name}"
        elif isinstance(node, ast.If):  # what is imported later stands under TYPE_CHECKING
            for inner in node.body:
                if isinstance(inner, ast.ImportFrom):
                    for alias in inner.names:
                        yield alias.asname or alias.name, f"{inner.module}.{alias.name}"


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach one another."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        left = [*edges.get(start, ())]
        while left:
            if (module := left.pop()) not in seen:
                seen.add(module)
                left += edges.get(module, ())
        return seen

    reach = {module: reached(module) for module in edges}
    groups = {
        tuple(sorted(it for it in reach[module] if module in reach.get(it, ())))
        for module in edges
        if module in reach[module]
    }
    return [list(group) for group in sorted(groups)]


def _imports_in(
    node: ast.AST, module: str, *, for_annotations: bool = False
) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        inside = for_annotations or (
            isinstance(node, ast.If)
            and "TYPE_CHECKING" in ast.unparse(node.test)
            and child in node.body
        )
        for name in _names(child, module):
            yield name, inside
        yield from _imports_in(child, module, for_annotations=inside)


def _names(node: ast.AST, module: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (it.name for it in node.names if it.name.partition(".")[0] == "quire")
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, f"{module}: imports are absolute"
        if (node.module or "").partition(".")[0] == "quire":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full in trees() or full == NATIVE
                yield full if is_module else str(node.module)
