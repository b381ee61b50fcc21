"""Workers with another Python, or without a package: the format works, or says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from quire.spark.sessions import java

pytestmark = pytest.mark.spark

OWN_SESSION = """if True:
    import sys
    from pyspark.sql import SparkSession
    import quire.spark

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = spark.getOrCreate()
    quire.spark.register(spark)
    print(spark.read.format("quire").load(sys.argv[1]).count())
"""
WITHOUT_REGISTERING = """if True:
    import sys
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    try:
        spark.getOrCreate().read.format("quire").schema("_index long").load(sys.argv[1]).count()
    except Exception as error:
        print(error)
"""


def run(program: str, path: Path, **environment: str) -> str:
    java.use()
    own = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=own | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def recorded(path: Path) -> Path:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"one", b"two"])
    return path


def test_a_session_of_the_users_runs_this_python(recorded: Path, tmp_path: Path) -> None:
    """As in a notebook whose environment is not on the path."""
    (tmp_path / "bin").mkdir()
    other = tmp_path / "bin" / "python3"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without packages
    other.chmod(0o755)
    found = run(OWN_SESSION, recorded, PATH=f"{other.parent}:{os.environ['PATH']}")
    assert found.split()[-1] == "2"


def test_without_pyarrow_the_format_says_what_to_install(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "pyarrow.py").write_text("raise ImportError(\"No module named 'pyarrow'\")")

    printed = run(
        WITHOUT_REGISTERING,
        recorded,
        PYSPARK_PYTHON=sys.executable,
        PYTHONPATH=str(folder),
    )

    wanted = "format quire: No module named 'pyarrow'; install it for"
    assert f"ImportError: {wanted} {sys.executable}: pip install 'quire[spark]'" in printed
