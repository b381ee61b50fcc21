"""What a session sends to a cluster: the files of the package that runs here."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from quire import _native
from quire.spark.sessions import shipping


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
