"""
Pipelines on Spark, defined by a YAML file: ``quire pipeline run pipeline.yaml``.

Needs ``quire[pipeline]``; ``docs/pipelines.md`` teaches it.

>>> import quire.pipeline
>>> report = quire.pipeline.run(quire.pipeline.load("pipeline.yaml"))  # doctest: +SKIP
"""

from quire.errors import PipelineError, PipelineFileError
from quire.pipeline.declarative import declare
from quire.pipeline.report.model import Report
from quire.pipeline.runtime.runner import run
from quire.pipeline.runtime.triggers import Stop
from quire.pipeline.spec.loader import load

__all__ = ["PipelineError", "PipelineFileError", "Report", "Stop", "declare", "load", "run"]
