"""
Pipelines on Spark, defined by a YAML file: ``quire pipeline run pipeline.yaml``.

Needs ``quire[pipeline]``; see ``docs/pipelines.md``.

>>> import quire.pipeline
>>> from pathlib import Path
>>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
>>> _ = Path("trades.yaml").write_text('''
... pipeline: trades
... sources:
...   trades: {format: quire, path: orders, schema: "symbol string, price double"}
... steps:
...   clean: {from: trades}
... sinks:
...   - {from: clean, format: parquet, path: clean}
... ''')
>>> pipeline = quire.pipeline.load("trades.yaml")
>>> report: quire.pipeline.Report = quire.pipeline.run(pipeline, spark=spark)
>>> report.outcome, report.rows_out
('succeeded', 1)
"""

from quire.errors import PipelineError, PipelineFileError
from quire.pipeline.declarative import declare
from quire.pipeline.run_report.facts import Report
from quire.pipeline.runtime.before_run import check
from quire.pipeline.runtime.runner import run
from quire.pipeline.runtime.triggers import Stop
from quire.pipeline.spec.loader import load

__all__ = [
    "PipelineError",
    "PipelineFileError",
    "Report",
    "Stop",
    "check",
    "declare",
    "load",
    "run",
]
