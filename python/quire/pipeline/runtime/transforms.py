"""The transform of a step: SQL, or a Python function from DataFrames to a DataFrame."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from quire.errors import StepError
from quire.pipeline.spec.parts import Pipeline, PythonStep, SqlStep, Step


def transformed(
    spark: SparkSession, pipeline: Pipeline, step: Step, inputs: Mapping[str, DataFrame]
) -> DataFrame:
    """
    Return the rows of *step* before its rules.

    Raises:
        StepError: A Python transform did not return a DataFrame.

    """
    if isinstance(step, SqlStep):
        frames: dict[str, Any] = dict(inputs)
        return spark.sql(step.sql, **frames)
    if isinstance(step, PythonStep):
        found = function(step.python, pipeline.file.absolute().parent)(**inputs)
        if not isinstance(found, DataFrame):
            raise StepError(f"{step.python} returned no DataFrame: {type(found).__name__}")
        return found
    return next(iter(inputs.values()))


def function(where: str, folder: Path) -> Callable[..., object]:
    """
    Return the function that ``module:name`` or ``file.py:name`` names.

    Raises:
        ImportError: The module does not exist.
        StepError: The module or file has no such function.

    """
    place, _, name = where.rpartition(":")
    module = _file(folder / place) if place.endswith(".py") else importlib.import_module(place)
    found = getattr(module, name, None)
    if not callable(found):
        raise StepError(f"no such function: {where}")
    return found  # type: ignore[no-any-return]


def _file(path: Path) -> object:
    """Return a file as a module; each file is run once."""
    name = f"_quire_pipeline_{path.stem}_{abs(hash(path.resolve()))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"not a Python file: path={path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Workers cannot import it.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
