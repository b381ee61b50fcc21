"""The oldest PySpark, `spark-submit` and Spark Connect: what works, and what says no."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest

from paths import ROOT, SUPPORT_FOLDERS
from quire.spark.sessions import java

PROGRAM = ROOT / "tests" / "support" / "spark" / "spark_features.py"
OLDEST = ROOT / ".venv" / "oldest-spark" / "bin" / "python"
WORKS: Final[Mapping[str, object]] = {
    "scan": [74.5, 11175],
    "places": 150,
    "source": [100, 50],
    "view": [149, "n0"],
    "write": 100,
    "archive": [11175],
    "stream": [150, 150, 0],
    "sink": 150,
}
NEWER: Final[Mapping[str, object]] = {"lag": {"queue": 0}, "limit": [60, 60, 30]}

Found = Mapping[str, Mapping[str, Any]]


def features(command: list[str | Path], folder: Path, way: str) -> Found:
    """Run the program in a process of its own, and return what it says of each feature."""
    java.use()
    own = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    own["PYTHONPATH"] = os.pathsep.join(map(str, [ROOT / "python", *SUPPORT_FOLDERS]))
    done = subprocess.run(
        [*command, PROGRAM, folder, way],
        env=own | {"PYSPARK_PYTHON": str(command[0])} if way == "session" else own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line.pop("feature"): line for line in lines}


def works(found: Found, expected: Mapping[str, object]) -> None:
    assert {name: found[name].get("found", found[name]) for name in expected} == expected


@pytest.mark.slow
def test_the_oldest_release_does_all_that_it_can(tmp_path: Path) -> None:
    if not OLDEST.exists():
        pytest.fail("the environment of the oldest PySpark is missing: run `make check` once")
    found = features([OLDEST], tmp_path, "session")
    works(found, WORKS)
    goes_on, then = found["pruned"]["found"]
    assert goes_on == 10
    assert "DataLossError: messages are gone: topic=live" in then
    needs = "needs PySpark 4.2 or newer: found=4.1."
    assert found["lag"]["error"].startswith(f"UnsupportedError: lag_of {needs}")
    assert f"UnsupportedError: maxOffsetsPerTrigger {needs}" in found["limit"]["error"]


@pytest.mark.slow
def test_spark_submit_runs_the_same(tmp_path: Path) -> None:
    home = Path(pyspark.__file__).parent
    submit: list[str | Path] = [home / "bin" / "spark-submit", "--master", "local[2]"]
    submit += ["--conf", f"spark.pyspark.python={sys.executable}"]
    submit += ["--conf", "spark.ui.enabled=false"]
    found = features(submit, tmp_path, "submit")
    works(found, {**WORKS, **NEWER})
    assert found["own_session"] == {"found": True}


@pytest.mark.slow
def test_spark_connect_runs_the_same(tmp_path: Path) -> None:
    """A server of this process's own, as PySpark starts it for a session at `local[2]`."""
    missing = [name for name in ("grpc", "grpc_status", "zstandard") if find_spec(name) is None]
    if missing:
        pytest.skip(f"Spark Connect needs pip install 'pyspark[connect]': missing={missing}")
    found = features([sys.executable], tmp_path, "connect")
    works(found, {**WORKS, "lag": NEWER["lag"]})
    assert found["limit"]["found"] == [None] * 3, "batches; its progress has no numbers of rows"
    goes_on, then = found["pruned"]["found"]
    assert goes_on == 10
    assert "DataLossError: messages are gone: topic=live" in then
    needs = "UnsupportedError: quire.spark.session does not support Spark Connect"
    assert found["own_session"]["error"].startswith(needs)


def test_a_release_that_is_too_old_is_refused_at_the_import(tmp_path: Path) -> None:
    folder = tmp_path / "pyspark"
    folder.mkdir()
    (folder / "__init__.py").write_text("__version__ = '4.0.5'")
    program = "import quire.spark"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'python'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    says = "ImportError: quire.spark needs PySpark 4.1 to 4.3: found=4.0.5; pip install"
    assert done.stderr.splitlines()[-1].startswith(says)
