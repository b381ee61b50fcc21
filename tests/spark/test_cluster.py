"""A standalone cluster whose Python has no Quire runs the copy that a session sends."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

import quire
from quire import _native
from quire.spark import shipping
from spark_cluster import bare_python, cluster, run_driver

JOB = Path(__file__).parent.with_name("spark_cluster_job.py")
COUNT = 1000


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A queue of so many maps."""
    with quire.open(tmp_path / "numbers") as queue, queue.appender() as appender:
        for number in range(COUNT):
            appender.write_map({"n": number, "text": f"{number:04}"})
    return tmp_path / "numbers"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cluster_without_quire_runs_the_copy_that_is_sent(tmp_path: Path, numbers: Path) -> None:
    python = bare_python(tmp_path / "bare")

    with cluster(tmp_path, python) as master:
        told = json.loads(run_driver(JOB, python, master, numbers).splitlines()[-1])

    with quire.open(numbers, read_only=True) as queue:
        assert told["total"] == [COUNT, sum(range(COUNT)), queue.first_index, f"{COUNT - 1:04}"]
    assert told["parts"] == 10
    homes = [f"{tmp_path}/worker{number}/" for number in range(2)]
    for package, native, executable in told["workers"]:
        assert executable == str(python)
        assert package.startswith(tuple(homes))
        assert native.startswith(tuple(homes))
    assert len({native for _, native, _ in told["workers"]}) == 2  # each worker unpacked its own


def test_the_archive_holds_what_runs_here_and_other_settings_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    given = {"spark.archives": "data.zip#data", "spark.executorEnv.PYTHONPATH": "lib", "a": "b"}

    settings = shipping.settings(given)

    assert settings["a"] == "b"
    data, own = settings["spark.archives"].split(",")
    assert data == "data.zip#data"
    file, _, name = own.partition("#")
    assert settings["spark.executorEnv.PYTHONPATH"] == f"{name}:lib"
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    here = Path(_native.__file__)
    there = tmp_path / "quire" / here.name
    assert hashlib.sha256(there.read_bytes()).digest() == hashlib.sha256(here.read_bytes()).digest()
    assert (tmp_path / "pyspark_quire" / "__init__.py").exists()
    assert not list(tmp_path.rglob("*.pyc"))
