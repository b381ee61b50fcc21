"""
What the API reference makes of docstrings: cross-references become links, doctests programs.

A native class has a stub, so two things that a stub says differently are evened out: `__new__`
gives the signature of a class, and the docstring of a function that has only overloads stands at
one of them.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from griffe import Class, Docstring, Extension, Function, Module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from griffe import Object

DOCTEST = re.compile(r"(?m)^( *)>>> .*(?:\n\1(?=\S).*|\n\1    .*)*")
ROLE = re.compile(r":(?:attr|class|exc|func|meth|mod):`([^`]+)`")


class Docstrings(Extension):
    """Prepares the docstrings of a package for the site."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:  # noqa: ANN401 - griffe's hook
        """Go through a package that was read."""
        for scope in _scopes(pkg):
            _drop_declarations(scope)
            _add_overloaded(scope)
            if isinstance(scope, Class):
                _add_constructor(scope)
            for docstring in _docstrings(scope):
                docstring.value = ROLE.sub(
                    lambda role, scope=scope: f"[`{role[1]}`][{_public(pkg, scope, role[1])}]",
                    DOCTEST.sub(_as_program, docstring.value),
                )


def _as_program(doctest: re.Match[str]) -> str:
    """Return a doctest as code that can be copied: without prompts, with results as comments."""
    lines = ["```python", *map(_as_code, textwrap.dedent(doctest[0]).splitlines()), "```"]
    return textwrap.indent("\n".join(lines), doctest[1])


def _as_code(line: str) -> str:
    return line[4:] if line.startswith((">>>", "...")) else f"# {line}"


def _scopes(scope: Module | Class) -> Iterator[Module | Class]:
    yield scope
    for member in list(scope.members.values()):
        if not member.is_alias and isinstance(member, Module | Class):
            yield from _scopes(member)


def _docstrings(scope: Module | Class) -> Iterator[Docstring]:
    if scope.docstring:
        yield scope.docstring
    for member in scope.members.values():
        is_leaf = not member.is_alias and not isinstance(member, Module | Class)
        if is_leaf and member.docstring:
            yield member.docstring


def _drop_declarations(scope: Module | Class) -> None:
    """Drop what a mixin declares of its other base for type checkers: it has no docstring."""
    if isinstance(scope, Class) and scope.filepath.suffix == ".py":
        for name, member in list(scope.members.items()):
            is_code = member.is_function or "property" in member.labels
            if is_code and not name.startswith("_") and not member.docstring:
                scope.del_member(name)


def _add_overloaded(scope: Module | Class) -> None:
    for name, overloads in list(scope.overloads.items()):
        documented = next((it for it in overloads if it.docstring), None)
        if documented is not None and name not in scope.members:
            scope.set_member(name, documented)
            documented.overloads = [it for it in overloads if it is not documented] + [documented]


def _add_constructor(cls: Class) -> None:
    new = cls.members.get("__new__")
    if isinstance(new, Function) and "__init__" not in cls.members:
        init = Function("__init__", parameters=new.parameters, returns=None)
        cls.set_member("__init__", init)


def _public(pkg: Module, scope: Object, target: str) -> str:
    """Return the name under which the reference has what a docstring of *scope* refers to."""
    path = _found(pkg, scope, target).split(".")
    modules, depth = [pkg], 1
    while depth < len(path) and isinstance(module := modules[-1].members.get(path[depth]), Module):
        modules.append(module)
        depth += 1
    for package in [*modules[1:2], pkg]:
        if depth < len(path) and path[depth] in (package.exports or ()):
            return ".".join([package.path, *path[depth:]])
    return ".".join(path)


def _found(pkg: Module, scope: Object, target: str) -> str:
    first = target.partition(".")[0]
    if first == pkg.name:
        return target
    place: Object | None = scope
    while place is not None:
        if first in place.members:
            return f"{place.path}.{target}"
        place = place.parent
    bases = scope.bases if isinstance(scope, Class) else []
    return f"{scope.path}.{target}" if bases and "." not in target else f"{pkg.name}.{target}"
