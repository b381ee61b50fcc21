"""
Makes the format ``quire`` known to every Spark session: Spark looks into modules of such a name.

Spark gives up on all of them when one fails to import, so that this one never does.
"""

from contextlib import suppress

with suppress(ImportError):  # without pyarrow there is no source
    from quire.spark.source import QuireDataSource as DefaultSource

__all__ = ["DefaultSource"]
