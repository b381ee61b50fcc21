"""Writes the docstrings of a stub, each into a file named after its class, function or member."""

import ast
import sys
from pathlib import Path


def docstrings(stub: ast.Module) -> dict[str, str]:
    """Return names and docstrings; a class has those of its bases, too."""
    classes: dict[str, dict[str, str]] = {}
    found: dict[str, str] = {}
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
            inherited = [classes[base] for base in bases if base in classes]
            members = dict(it for base in inherited for it in base.items()) | _own(node.body)
            classes[node.name] = members
            found |= {f"{node.name}.{name}": text for name, text in members.items()}
    return found | _own(stub.body)


def _own(body: list[ast.stmt]) -> dict[str, str]:
    """Of overloads, and of the halves of a property, one has a docstring."""
    documented = [it for it in body if isinstance(it, ast.ClassDef | ast.FunctionDef)]
    return {it.name: text for it in documented if (text := ast.get_docstring(it))}


if __name__ == "__main__":
    stub, target = map(Path, sys.argv[1:])
    for name, text in docstrings(ast.parse(stub.read_text("utf-8"))).items():
        # Text on the first line would let `inspect.cleandoc` dedent the rest, code and all.
        (target / name).write_text(f"\n{text}" if "\n" in text else text, "utf-8")
