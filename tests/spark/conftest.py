import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quire.spark

HERE = Path(__file__).parent
# The first query of a session takes most of a minute where others use the cores.
SECONDS = 240


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give Spark its time; what a test says itself counts before this."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: starting it takes seconds."""
    # Spark's Python processes find the tests' own modules by it.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    session = quire.spark.session("tests", cores=2)
    yield session
    session.stop()
