"""The page of measurements is what the results say that are kept with it."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from bench import parts, report
from bench.scenarios import FULL

RESULTS = sorted(report.RESULTS.glob("*.json"))


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: str(file.stem))
def test_a_kept_result_is_of_a_whole_run(file: Path) -> None:
    found = json.loads(file.read_text("utf-8"))
    assert found["part"] == file.stem
    assert found["volume"] == json.loads(json.dumps(asdict(FULL)))
    assert not found["quick"]
    assert not found["commit"].endswith("-dirty"), "measure what is committed"


@pytest.mark.check
def test_the_page_is_written_from_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, page = report.PAGE, tmp_path / report.PAGE.name
    shutil.copy(kept, page)
    monkeypatch.setattr(report, "PLOTS", tmp_path)
    monkeypatch.setattr(report, "PAGE", page)
    report.write(parts.load(report.RESULTS))
    assert page.read_text("utf-8") == kept.read_text("utf-8"), "run `python -m bench.report`"
