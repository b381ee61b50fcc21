"""The lag of a stream, from its progress."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from quire._common import arguments
from quire.spark import _pyspark


def lag_of(progress: Mapping[str, Any] | None) -> dict[str, int]:
    """
    Return the lag of each topic after a batch: the number of messages not read yet.

    Args:
        progress: The progress of a query, such as ``query.lastProgress``; None before the first
            batch.

    Raises:
        UnsupportedError: PySpark 4.1 does not report the latest offsets.

    Examples:
        >>> import quire.spark
        >>> quire.spark.lag_of(query.lastProgress)  # doctest: +SKIP
        {'orders': 17, 'trades': 0}

    """
    if not _pyspark.has(_pyspark.READ_LIMITS):
        raise _pyspark.refusal("lag_of", _pyspark.READ_LIMITS)
    lags: dict[str, int] = {}
    try:
        sources = progress["sources"] if progress is not None else ()
    except (TypeError, KeyError):
        raise arguments.refusal("progress", "query.lastProgress", progress) from None
    for source in sources:
        for topic, place in _items(json.loads(source["latestOffset"] or "null")):
            for name, lag in _items(place):
                if name == "lag":
                    lags[topic] = lags.get(topic, 0) + lag
    return lags


def _items(value: object) -> Iterable[tuple[str, Any]]:
    """Return the items of a JSON object; none for other values, which other sources may report."""
    return cast("dict[str, Any]", value).items() if isinstance(value, dict) else ()
