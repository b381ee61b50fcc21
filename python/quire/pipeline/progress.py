"""What Spark tells about the batches of a stream: durations, offsets, lag."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, cast

from quire.pipeline.report import BatchReport
from quire.spark.lags import lag_of


class Progress:
    """Spark's reports of one run, by batch."""

    def __init__(self) -> None:
        """Know nothing."""
        self._batches: dict[int, dict[str, Any]] = {}

    def add(self, found: Any) -> None:  # noqa: ANN401 - a dictionary or a StreamingQueryProgress
        """Take what Spark reports of a batch; a batch without rows tells nothing new."""
        told: dict[str, Any] = json.loads(found.json) if hasattr(found, "json") else found
        if told["numInputRows"] or told["batchId"] not in self._batches:
            self._batches[told["batchId"]] = told

    def completed(self, batch: BatchReport) -> BatchReport:
        """Return a batch's report with what Spark knows of it."""
        found = self._batches.get(batch.batch)
        if found is None:
            return batch
        lags = [_lag(source) for source in found["sources"]]
        known = [lag for lag in lags if lag is not None]
        return dataclasses.replace(
            batch,
            lag=sum(known) if known else None,
            durations={name: ms / 1000 for name, ms in found["durationMs"].items()},
        )

    def offsets(self, number: int) -> dict[str, Any]:
        """Return `start`, `end` and `lag` of the source with this number in the stream."""
        told = [self._batches[batch]["sources"] for batch in sorted(self._batches)]
        mine = [sources[number] for sources in told if number < len(sources)]
        if not mine:
            return {}
        first = _offset(mine[0].get("startOffset"))
        return {"start": first, "end": _offset(mine[-1].get("endOffset")), "lag": _lag(mine[-1])}


def _offset(found: object) -> dict[str, Any] | None:
    """Return an offset as a dictionary."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return {"offset": found}
    if isinstance(found, dict):
        return cast("dict[str, Any]", found)
    return None if found is None else {"offset": found}


def _lag(source: dict[str, Any]) -> int | None:
    """Return how many messages a source had left; None if it does not tell."""
    latest = source.get("latestOffset")
    text = latest if isinstance(latest, str) else json.dumps(latest)
    try:
        lags = lag_of({"sources": [{"latestOffset": text}]})
    except ValueError:
        return None  # of another source, and no JSON
    return sum(lags.values()) if lags else None
