"""The modules of the Rust crates, and which of them each one names."""

import re
from collections.abc import Iterator

from paths import ROOT

Module = tuple[str, ...]

FOLDERS = {"wire": "quire_wire", "kernel": "quire_kernel", "binding": "quire_binding"}
TESTS = re.compile(r"(?m)^#\[cfg\(test\)\]\s*mod ")
USE = re.compile(r"(?m)^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:$])(?:crate|super|quire_\w+)(?:::\w+)+")


def sources() -> dict[Module, str]:
    """Return the code of each module, by its path, without comments and tests."""
    found: dict[Module, str] = {}
    for folder, crate in FOLDERS.items():
        base = ROOT / "crates" / folder / "src"
        for file in sorted(base.rglob("*.rs")):
            parts = file.relative_to(base).with_suffix("").parts
            name = (crate, *(part for part in parts if part not in {"lib", "mod"}))
            code = re.sub(r"//[^\n]*", "", file.read_text("utf-8"))
            found[name] = TESTS.split(code)[0]
    return found


def edges() -> dict[str, set[str]]:
    """Return the modules that each module names: by `use`, or by a path in its code."""
    texts = sources()
    re_exports: dict[Module, Module] = {}
    named: dict[Module, list[Module]] = {}
    for module, text in texts.items():
        named[module] = []
        for public, tree in USE.findall(text):
            for leaf in leaves(tree):
                path = absolute(texts, module, leaf)
                named[module].append(path)
                if public:
                    re_exports[(*module, leaf[-1])] = path
        bodies = PATH.findall(USE.sub("", text))
        named[module] += [absolute(texts, module, tuple(body.split("::"))) for body in bodies]
    found: dict[str, set[str]] = {}
    for module, paths in named.items():
        own = unit(texts, module)
        targets = {unit(texts, home(texts, re_exports, path)) for path in paths}
        others = {target for target in targets if target and target[: len(own)] != own}
        found.setdefault("::".join(own), set()).update("::".join(other) for other in others)
    return found


def leaves(tree: str, prefix: Module = ()) -> Iterator[Module]:
    """Yield the paths of a `use` tree."""
    tree = re.sub(r"\s+as\s+\w+$", "", tree.strip())
    if group := re.fullmatch(r"((?:\w+\s*::\s*)*)\{(.*)\}", tree, re.DOTALL):
        base = (*prefix, *re.findall(r"\w+", group[1]))
        for part in split(group[2]):
            yield from leaves(part, base)
    else:
        path = (*prefix, *(part.strip() for part in tree.split("::")))
        yield path[:-1] if path[-1] == "self" else path


def split(group: str) -> Iterator[str]:
    """Yield the parts of a group, at its own commas."""
    depth, part = 0, ""
    for char in f"{group},":
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if part.strip():
                yield part
            part = ""
        else:
            part += char


def absolute(texts: dict[Module, str], module: Module, path: Module) -> Module:
    """Return a path from its crate on; an empty one for what is not ours."""
    if path[0] == "crate":
        return (module[0], *path[1:])
    if path[0] in FOLDERS.values():
        return path
    if path[0] == "super":
        depth = next((at for at, part in enumerate(path) if part != "super"), len(path))
        return (*module[: len(module) - depth], *path[depth:])
    return (*module, *path) if (*module, path[0]) in texts else ()


def home(texts: dict[Module, str], re_exports: dict[Module, Module], path: Module) -> Module:
    """Return the module that declares what a path names."""
    for _ in range(4):  # a re-export of a re-export
        known = [at for at in range(len(path), 0, -1) if path[:at] in re_exports]
        if not known:
            break
        path = (*re_exports[path[: known[0]]], *path[known[0] :])
    lengths = range(len(path), 0, -1)
    return next((path[:length] for length in lengths if path[:length] in texts), ())


def unit(texts: dict[Module, str], module: Module) -> Module:
    """Return the module itself, or the one in whose folder it is: a file and the folder of its name
    are one module."""
    for length in range(2, len(module)):
        folder = ROOT / "crates" / crate_folder(module) / "src" / "/".join(module[1:length])
        if module[:length] in texts and folder.with_suffix(".rs").exists():
            return module[:length]
    return module


def crate_folder(module: Module) -> str:
    """Return the folder of a module's crate."""
    return next(folder for folder, crate in FOLDERS.items() if crate == module[0])
