import dataclasses
import json
from pathlib import Path

import pytest

from quire.pipeline import Report

EXAMPLE = Path(__file__).parent / "reports" / "run.json"


def test_a_report_comes_back_from_its_json() -> None:
    report = Report.read(EXAMPLE)

    assert report.to_json() == EXAMPLE.read_text("utf-8")
    assert Report.from_json(report.to_json()) == report
    assert (report.rows_in, report.rows_out, report.quarantined) == (114_321, 115_051, 602)
    assert report.duration_s == 19.4


def test_every_field_is_in_the_json() -> None:
    found = json.loads(EXAMPLE.read_text("utf-8"))

    assert [*found] == ["version", *(field.name for field in dataclasses.fields(Report))]


@pytest.mark.parametrize("text", ["[]", "{}", '{"version": 2}'])
def test_another_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected version=1"):
        Report.from_json(text)
