"""
Pipelines on Spark, defined by a YAML file: ``quire pipeline run pipeline.yaml``.

Needs ``quire[pipeline]``; ``docs/pipelines.md`` teaches it.

>>> import quire.pipeline
>>> report = quire.pipeline.run(quire.pipeline.load("pipeline.yaml"))  # doctest: +SKIP
"""

from quire.pipeline.declarative import declare
from quire.pipeline.errors import PipelineError
from quire.pipeline.files import load
from quire.pipeline.places import PipelineFileError
from quire.pipeline.report import Report
from quire.pipeline.run import run
from quire.pipeline.triggers import Stop

__all__ = ["PipelineError", "PipelineFileError", "Report", "Stop", "declare", "load", "run"]
