"""
Pipelines on Spark, defined by a YAML file: ``quire pipeline run pipeline.yaml``.

Needs ``quire[pipeline]``; ``docs/pipelines.md`` teaches it.
"""

from quire.pipeline.report import Report

__all__ = ["Report"]
