from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import quire.spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: starting it takes seconds."""
    session = quire.spark.session("tests", cores=2)
    yield session
    session.stop()
