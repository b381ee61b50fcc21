from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from matplotlib.container import BarContainer

from quire.pages import Page
from quire.pages.blocks import Block, Chart, Table
from quire.pipeline.run_report.facts import (
    BatchReport,
    Report,
    RuleReport,
    SinkReport,
    SourceReport,
    StepReport,
)
from quire.pipeline.run_report.html_page import page_of

START = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
RULES = (
    RuleReport(
        name="has_price",
        condition="price > 0",
        action="quarantine",
        broken=7,
        destination="bad/<orders>",
    ),
    RuleReport(name="known", condition="symbol is not null", action="warn", broken=0),
)
REPORT = Report(
    pipeline="orders",
    run="20261121-093000-abc",
    file="orders.yaml",
    schedule="every 30s",
    mode="incremental",
    outcome="succeeded",
    started=START,
    finished=START + timedelta(seconds=61.5),
    sources=(
        SourceReport(
            name="orders",
            format="quire",
            path="/data/orders",
            rows=1000,
            start={"orders": 0x10},
            end={"orders": 0x20},
            lag=5,
        ),
        SourceReport(name="planes", format="csv", path="planes.csv"),
    ),
    steps=(
        StepReport(name="orders", kind="source", rows_out=1000),
        StepReport(name="planes", kind="lookup"),
        StepReport(
            name="priced",
            kind="sql",
            inputs=("orders",),
            rows_in=1000,
            rows_out=980,
            quarantined=7,
            dropped=3,
            held=10,
            duration_s=4.5,
            rules=RULES,
        ),
    ),
    sinks=(
        SinkReport(
            step="priced",
            format="parquet",
            destination="out/priced",
            rows=980,
            batches=3,
            repeated=1,
            duration_s=9.25,
        ),
    ),
    batches=tuple(
        BatchReport(
            batch=n,
            started=START,
            duration_s=2.0 + n,
            rows_in=300 + n,
            rows_out=290,
            quarantined=2,
            rows_per_s=100.0 * n,
            lag=50 - n,
            durations={"addBatch": 1.0 + n, "triggerExecution": 2.0 + n},
        )
        for n in range(3)
    ),
    quarantine="bad",
)


def blocks(page: Page) -> dict[str, Block]:
    found = [block for section in page.sections for block in section.blocks]
    return {it.title if isinstance(it, Chart | Table) else it: it for it in found}


def rows(page: Page, title: str) -> list[list[object]]:
    table = blocks(page)[title]
    assert isinstance(table, Table)
    return [list(row) for row in table.rows]


def bars(page: Page, title: str, *, upright: bool = False) -> dict[str, list[float]]:
    chart = blocks(page)[title]
    assert isinstance(chart, Chart)
    drawn = [it for it in chart.figure.axes[0].containers if isinstance(it, BarContainer)]
    return {
        str(it.get_label()): [
            bar.get_height() if upright else bar.get_width() for bar in it.patches
        ]
        for it in drawn
    }


def test_every_number_of_the_report_is_on_the_page() -> None:
    page = page_of(REPORT)

    assert page.title == "Pipeline orders"
    assert "The run succeeded: 1,000 rows read, 980 rows written in 61.5 seconds" in page.summary
    assert [(lead.value, lead.label) for lead in page.leads] == [
        ("1,000", "rows read"),
        ("980", "rows written"),
        ("7", "rows in quarantine"),
        ("5", "messages not read yet"),
        ("61.5 s", "from start to end"),
    ]
    assert rows(page, "Sources and steps") == [
        ["orders", "source", "", None, 1000, 0, 0, 0],
        ["planes", "lookup", "", None, None, 0, 0, 0],
        ["priced", "sql", "orders", 1000, 980, 7, 3, 10],
    ]
    assert rows(page, "Rules") == [
        ["priced", "has_price", "price > 0", "quarantine", 7, "bad/<orders>"],
        ["priced", "known", "symbol is not null", "warn", 0, None],
    ]
    assert rows(page, "Sources")[0] == [
        *("orders", "quire", "/data/orders", 1000),
        *("orders 0x10", "orders 0x20", 5),
    ]
    assert rows(page, "Sinks") == [["priced", "parquet", "out/priced", 980, 3, 1, 9.25]]
    assert "2026-11-21 09:30:00 UTC to 2026-11-21 09:31:01 UTC" in page.footer
    assert "bad/<wbr>&lt;orders&gt;" in page.html()
    assert page.html() == page_of(REPORT).html()


@pytest.mark.check
def test_the_plots_show_the_flow_the_rules_and_the_batches() -> None:
    page = page_of(REPORT)

    assert bars(page, "Rows by step, in the order they are computed") == {
        "passed on": [1000, 980],
        "quarantined": [0, 7],
        "dropped": [0, 3],
        "held": [0, 10],
    }
    assert bars(page, "Rows that broke a rule") == {"rows": [7]}
    assert bars(page, "Seconds by step and sink") == {"seconds": [4.5, 9.25]}
    assert bars(page, "Seconds by batch", upright=True) == {"addBatch": [1, 2, 3]}
    assert "Batch 2 took longest, 3.0 seconds." in page.html()
    curves = {}
    for title in ("Rate by batch", "Lag by batch"):
        chart = blocks(page)[title]
        assert isinstance(chart, Chart)
        (line,) = chart.figure.axes[0].lines
        curves[title] = np.asarray(line.get_ydata()).tolist()
    assert curves == {"Rate by batch": [0, 100, 200], "Lag by batch": [50, 49, 48]}


def test_a_run_that_failed_at_once_has_a_page_too() -> None:
    failed = REPORT.model_copy(
        update={
            "outcome": "failed",
            "errors": ("no such file: <x>",),
            "sources": (),
            "steps": (),
            "sinks": (),
            "batches": (),
        }
    )

    page = page_of(failed)

    assert page.sections[0].title == "What went wrong"
    assert rows(page, "Errors") == [["no such file: <x>"]]
    assert "no such file: &lt;x&gt;" in page.html()
    assert "Broken rules" not in page.html()
