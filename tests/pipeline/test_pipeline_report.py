import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from quire.pipeline import Report
from quire.pipeline.run_report.facts import BatchReport

EXAMPLE = Path(__file__).parent / "reports" / "run.json"


def ordered(text: str) -> object:
    """Return the values of JSON with the order of its keys."""
    return json.loads(text, object_pairs_hook=list)


def test_a_report_comes_back_from_its_json() -> None:
    report = Report.read(EXAMPLE)

    assert ordered(report.to_json()) == ordered(EXAMPLE.read_text("utf-8"))
    assert report.to_json().startswith('{\n  "version": 1,\n  "pipeline": "trades",\n')
    assert Report.from_json(report.to_json()) == report
    assert (report.rows_in, report.rows_out, report.quarantined) == (114_321, 115_051, 602)
    assert report.duration_s == 19.4


def test_every_field_is_in_the_json() -> None:
    found = json.loads(EXAMPLE.read_text("utf-8"))

    assert [*found] == [*Report.model_fields]


def test_times_are_utc_to_the_millisecond_and_durations_to_the_microsecond() -> None:
    started = datetime(2026, 1, 31, 12, 0, 0, 123_456, timezone(timedelta(hours=2)))
    batch = BatchReport(batch=0, started=started, duration_s=1 / 3, durations={"a": 2 / 3})

    found = json.loads(batch.model_dump_json())
    assert found["started"] == "2026-01-31T10:00:00.123Z"
    assert (found["duration_s"], found["durations"]) == (0.333333, {"a": 0.666667})


def test_names_that_are_not_utf_8_are_escaped() -> None:
    found = Report.read(EXAMPLE).model_dump() | {"file": "a\udcff.yaml", "errors": ["a\udcff"]}

    report = Report.model_validate(found)
    assert (report.file, report.errors) == (r"a\udcff.yaml", (r"a\udcff",))
    assert Report.from_json(report.to_json()) == report


def test_what_is_no_report_is_refused_with_its_place() -> None:
    found = json.loads(EXAMPLE.read_text("utf-8"))
    found["sinks"][0]["rows"] = "many"

    with pytest.raises(ValueError, match=r"^not a report .*: sinks\.0\.rows: .*'many'"):
        Report.from_json(json.dumps(found))


@pytest.mark.parametrize("text", ["[]", "{}", '{"version": 2}'])
def test_another_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected version=1"):
        Report.from_json(text)
