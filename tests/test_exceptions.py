"""Every exception of the package stands in one tree, and travels between processes."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
from importlib import import_module
from typing import Any

import pytest

import quire

SPECIAL: dict[str, tuple[Any, ...]] = {
    "LockHeldError": ("lock", "7"),
    "PipelineFileError": ("file", ("a problem",)),
    "CorruptError": ("text", "file", 7, "found", "expected"),
    "TailerInUseError": ("text", 7, 1_700_000_000),
}


def classes() -> list[type[BaseException]]:
    found: set[type[BaseException]] = set()
    for module in pkgutil.walk_packages(quire.__path__, "quire."):
        if module.name.endswith("__main__"):
            continue
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(kind, BaseException) and kind.__module__.startswith("quire"):
                found.add(kind)
    return sorted(found, key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__qualname__)
def test_an_exception_is_in_the_tree_and_pickles(kind: type[BaseException]) -> None:
    assert issubclass(kind, quire.QuireError)
    assert kind.__module__ == "quire.errors"
    is_drawn = f"── {kind.__name__} " in str(quire.errors.__doc__) or kind is quire.QuireError
    assert is_drawn, f"draw {kind.__name__} in the tree of quire/errors/__init__.py"
    made = kind(*SPECIAL.get(kind.__name__, ("what is wrong: path=q",)))
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is kind
    assert (str(again), again.args) == (str(made), made.args)
    assert vars(again) == vars(made)
