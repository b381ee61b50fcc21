"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def imported_later(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """
    Return the ``__getattr__`` of a package whose names stand in modules that few programs need.

    Args:
        package: Its name.
        modules: The module of each name, or nothing where the name is a module itself.

    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute: name={name}")
        if not modules[name]:
            return import_module(f"{package}.{name}")
        found: object = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
