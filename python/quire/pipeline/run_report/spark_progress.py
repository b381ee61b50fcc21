"""Spark's progress reports of a stream: durations, offsets and lag of its batches."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from quire.errors import UnsupportedError
from quire.pipeline.run_report.facts import BatchReport
from quire.spark.read.checkpoints import EXPECTED
from quire.spark.read.lag import lag_of

# A run may take weeks: only its last batches are kept.
KEPT: Final = 500


class Progress:
    """Spark's reports of one run, by batch."""

    def __init__(self) -> None:
        """Start without reports."""
        self._batches: dict[int, dict[str, Any]] = {}
        self._first: list[dict[str, Any]] = []

    def add(self, found: Any) -> None:  # noqa: ANN401 - a dictionary or a StreamingQueryProgress
        """Add the report of a batch; one without rows does not replace one with rows."""
        progress: dict[str, Any] = json.loads(found.json) if hasattr(found, "json") else found
        if progress["numInputRows"] or progress["batchId"] not in self._batches:
            self._batches[progress["batchId"]] = progress
            self._first = self._first or progress["sources"]
            while len(self._batches) > KEPT:
                del self._batches[next(iter(self._batches))]

    def completed(self, batch: BatchReport) -> BatchReport:
        """Return the report of a batch, completed by Spark's."""
        found = self._batches.get(batch.batch)
        if found is None:
            return batch
        lags = [_lag(source) for source in found["sources"]]
        known = [lag for lag in lags if lag is not None]
        return batch.model_copy(
            update={
                "lag": sum(known) if known else None,
                "durations": {name: ms / 1000 for name, ms in found["durationMs"].items()},
            }
        )

    def offsets(self, number: int) -> dict[str, Any]:
        """Return `start`, `end` and `lag` of the source with this number in the stream."""
        latest: list[dict[str, Any]] = []
        if self._batches:
            latest = self._batches[max(self._batches)]["sources"]
        if number >= min(len(latest), len(self._first)):
            return {}
        start = _offset(self._first[number].get("startOffset"))
        mine = latest[number]
        return {"start": start, "end": _offset(mine.get("endOffset")), "lag": _lag(mine)}


def _offset(found: object) -> dict[str, Any] | None:
    """Return an offset as a dictionary."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return {"offset": found}
    if isinstance(found, dict):
        offsets = cast("dict[str, Any]", found)
        return {name: it for name, it in offsets.items() if name != EXPECTED}
    return None if found is None else {"offset": found}


def _lag(source: dict[str, Any]) -> int | None:
    """Return how many messages a source had left; None if unknown."""
    latest = source.get("latestOffset")
    text = latest if isinstance(latest, str) else json.dumps(latest)
    try:
        lags = lag_of({"sources": [{"latestOffset": text}]})
    except UnsupportedError:
        return None  # an older PySpark does not report it
    except ValueError:
        return None  # another source, whose offset is not JSON
    return sum(lags.values()) if lags else None
