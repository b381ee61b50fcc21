"""The stub is the source of the native docstrings: `help()` and editors say the same."""

import ast
import inspect
from collections.abc import Iterator

import pytest

from paths import ROOT
from quire import _native

STUB = ast.parse((ROOT / "python/quire/_native.pyi").read_text("utf-8"))


def _documented(scope: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each name of the stub with its docstring, which may be empty."""
    for node, after in zip(scope.body, [*scope.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield prefix + node.name, ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            yield from _documented(node, f"{node.name}.")
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and prefix:
            match after:
                case ast.Expr(ast.Constant(str(text))):
                    yield prefix + node.target.id, inspect.cleandoc(text)
                case _:
                    yield prefix + node.target.id, ""


def docstrings() -> dict[str, str]:
    """Of overloads, and of the two halves of a property, one has the docstring."""
    found: dict[str, str] = {}
    for name, text in _documented(STUB):
        found[name] = found.get(name) or text
    return {name: text for name, text in found.items() if not name.endswith("__")}


@pytest.mark.parametrize(("name", "docstring"), docstrings().items())
def test_help_says_what_the_stub_says(name: str, docstring: str) -> None:
    owner, _, member = name.rpartition(".")
    native = getattr(getattr(_native, owner) if owner else _native, member)

    hint = f"run `make build`, and give {name} `#[doc = stub!(...)]` if it has none"
    assert (inspect.getdoc(native) or "") == docstring, hint


def test_nothing_native_has_a_docstring_of_its_own() -> None:
    known = docstrings()
    for owner, value in vars(_native).items():
        members: list[str] = [*vars(value)] if inspect.isclass(value) else []
        for name in [it for it in members if not it.startswith("__")]:
            assert f"{owner}.{name}" in known, "add it to python/quire/_native.pyi"
