"""
Makes the format ``quire`` known to every Spark session: Spark looks into modules of such a name.

Spark gives up on all of them when one fails to import, so that this one never does. Where a package
is missing, the format is known all the same, and says what to install.
"""

import sys
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from quire.spark.data_source import QuireDataSource as DefaultSource

__all__ = ["DefaultSource"]


def _stand_in(missing: ImportError) -> type[DataSource]:
    """Return a source of the same name that says what to install."""
    hint = f"format quire: {missing}; install it for {sys.executable}: pip install 'quire[spark]'"

    class Missing(DataSource):
        """Stands in for the source where it cannot be imported."""

        def __init__(self, options: dict[str, str]) -> None:
            """
            Say what is missing.

            Raises:
                ImportError: Always: a dependency of the data source is not installed.

            """
            del options
            raise ImportError(hint)

        @classmethod
        def name(cls) -> str:
            """Return the name of the format."""
            return "quire"

    return Missing


try:
    from quire.spark.data_source import QuireDataSource as DefaultSource
except ImportError as error:
    globals()["DefaultSource"] = _stand_in(error)
