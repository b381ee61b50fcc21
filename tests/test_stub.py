"""The stub is the source of the native docstrings: `help()` and editors say the same."""

import ast
import inspect
import runpy

import pytest

from paths import ROOT
from quire import _native

STUB = ast.parse((ROOT / "python/quire/_native.pyi").read_text("utf-8"))
DOCSTRINGS = runpy.run_path(str(ROOT / "crates/binding/docstrings.py"))["docstrings"](STUB)


def native_names() -> list[tuple[str, str]]:
    """The owner and the name of each class, function and member that `help()` shows."""
    top = [("", name) for name, it in vars(_native).items() if callable(it)]
    classes = {name: it for name, it in vars(_native).items() if inspect.isclass(it)}
    members = [(owner, name) for owner, it in classes.items() for name in sorted(vars(it))]
    return [it for it in top + members if not it[1].startswith("_")]


@pytest.mark.parametrize(("owner", "name"), native_names())
def test_help_says_what_the_stub_says(owner: str, name: str) -> None:
    native = getattr(getattr(_native, owner) if owner else _native, name)
    docstring = DOCSTRINGS.get(f"{owner}.{name}" if owner else name, "")

    hint = "run `make build`; if it still differs, the Rust item lacks `#[doc = stub!(...)]`"
    assert (inspect.getdoc(native) or "") == docstring, hint
