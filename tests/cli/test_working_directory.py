"""No verb imports what lies in the working directory, nor does a process that it starts."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from damages import fill
from quire.cli.verb_group import VERBS

QUIRE = Path(sysconfig.get_path("scripts")) / "quire"
PIPELINE = """\
pipeline: copied
sources:
  whole: {format: quire, path: whole, schema: "n long"}
steps:
  all: {sql: "select * from {whole}"}
sinks:
  - {from: all, format: parquet, path: out}
"""
# What follows a verb; the other verbs need only their path.
REST: dict[str, list[str]] = {
    "archive": ["whole", "archived"],
    "bench": [".", "--seconds", "0.05"],
    "completion": ["bash"],
    "compress-dictionary": ["whole"],
    "convert": ["whole", "converted", "--into", "vanilla"],
    "copy": ["whole", "copied"],
    "diff": ["whole", "whole"],
    "drain": ["whole", "--once"],
    "explain": ["whole", "0x4d1900000000"],
    "jitter": ["--seconds", "0.05"],
    "handover": ["whole", "--to", "nobody", "--timeout", "0.1"],
    "merge": ["whole", "whole", "merged", "--by", "n"],
    "pipeline": ["check", "pipeline.yaml"],
    "pretouch": ["whole", "--once"],
    "check-proof": ["proof", "--trust", "key.pub"],
    "prove": ["whole", "0x4d1900000000"],
    "prune": ["whole", "--max-cycles", "100"],
    "publish": ["whole", "--stdout", "--framing", "length"],
    "record": ["whole", "--stdin"],
    "replicate": ["source", "whole", "--listen", "203.0.113.1:1"],
    "replay": ["whole", "--to-queue", "replayed"],
    "rewrap": ["whole", "--key-file", "key", "--new-key-file", "key"],
    "roll-cycles": [],
    "salvage": ["whole", "salvaged"],
    "serve": [".", "--listen", "203.0.113.1:1"],
    "split": ["whole", "parts", "--by", "cycle"],
    "tail": ["whole", "--no-follow"],
    "time-index": ["whole", "--time-field", "n"],
    "token": ["list", "--tokens", "none"],
    "top": ["whole", "--once", "--interval", "0.1"],
    "verify": ["whole", "--filesystem"],
    "write": ["whole", "lines.yaml"],
}
# How the verbs that cannot end well here end.
REFUSALS = {
    "handover": b"no source of this queue took the request",
    "history": b"no message has a history",
    "check-proof": b"No such file",
    "prove": b"not sealed",
    "rewrap": b"No such file",
    "promote": b"only a replica can be promoted",
    "replicate": b"certificate",
    "serve": b"certificate",
}
HOSTILE = "open(r{marker!r}, 'a').write(__file__ + '\\n')\n"


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What every module in the working directory writes to when it is imported."""
    work, marker = tmp_path / "work", tmp_path / "imported"
    work.mkdir()
    monkeypatch.chdir(work)
    names = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize"}
    for name in names:
        if name.isidentifier():
            (work / f"{name}.py").write_text(HOSTILE.format(marker=str(marker)))
    fill(work / "whole", 3, 4)
    (work / "lines.yaml").write_text("n: 1\n")
    (work / "pipeline.yaml").write_text(PIPELINE)
    return marker


def run(verb: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [str(QUIRE), verb, *arguments]
    return subprocess.run(command, input=b"", capture_output=True, timeout=600, check=False)


@pytest.mark.slow
def test_no_verb_imports_from_the_working_directory(marker: Path) -> None:
    assert {*REST} <= {*VERBS}
    for verb in VERBS:
        ran = run(verb, *REST.get(verb, ["whole"]))
        assert not marker.exists(), f"{verb}: {marker.read_text()}"
        if verb in REFUSALS:
            assert REFUSALS[verb] in ran.stderr, (verb, ran.stderr)
        else:
            assert ran.returncode == 0, (verb, ran.stderr)


@pytest.mark.spark
def test_workers_of_a_pipeline_import_nothing_from_the_working_directory(marker: Path) -> None:
    ran = run("pipeline", "run", "pipeline.yaml", "--once")
    assert not marker.exists(), marker.read_text()
    assert ran.returncode == 0, ran.stderr.decode()


@pytest.mark.check
def test_a_module_that_an_option_names_is_found_and_takes_no_other_ones_place(
    marker: Path,
) -> None:
    Path("market.py").write_text(
        "import colorsys\nclass Market:\n    def trade(self, n: int): ...\n"
    )
    ran = run("read", "whole", "--interface", "market:Market")
    assert (ran.returncode, marker.exists()) == (0, False), ran.stderr


def test_the_check_finds_a_module_that_is_imported(marker: Path) -> None:
    subprocess.run([sys.executable, "-c", "import colorsys"], check=True)
    assert "colorsys.py" in marker.read_text()
