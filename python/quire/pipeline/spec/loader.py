"""From a pipeline's file to its values; everything wrong with the file is told at once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from quire.pipeline.spec.durations import duration_us, schedule_of
from quire.pipeline.spec.model import (
    Action,
    Deduplicate,
    Pipeline,
    Rule,
    Sink,
    Source,
    Step,
    Watermark,
)
from quire.pipeline.spec.path_conflicts import local
from quire.pipeline.spec.validation import (
    check_form,
    check_meaning,
    inputs_of_sql,
    is_followed,
    malformed_of,
    names,
    order_of,
)
from quire.pipeline.spec.yaml_lines import Document, read


def load(path: str | Path) -> Pipeline:
    """
    Read and check a pipeline's file; paths in it are relative to its folder.

    Raises:
        PipelineFileError: Something is wrong with it; all of it is listed, with lines.
        OSError: It cannot be read.

    """
    document = read(Path(path))
    check_form(document)
    document.refuse()
    check_meaning(document)
    document.refuse()
    return _pipeline(document)


def scheduled(pipeline: Pipeline, text: str) -> Pipeline:
    """
    Return a pipeline with another schedule than its file says.

    Raises:
        ValueError: There is no such schedule, or none but `once` is possible.

    """
    schedule = schedule_of(text)
    if pipeline.is_full and schedule.kind != "once":
        raise ValueError(f"mode full needs schedule once: found={text!r}")
    return dataclasses.replace(pipeline, schedule=schedule)


def _pipeline(document: Document) -> Pipeline:
    found = document.values
    name = found["pipeline"]
    state = Path(local(document, found.get("state", "state"))) / name
    written: dict[str, Any] = found.get("steps") or {}
    steps = {each: _step(document, each, it) for each, it in written.items()}
    order = order_of({each: step.inputs for each, step in steps.items()})
    quarantine = {"from": "", "format": "parquet", "path": str(state / "quarantine")}
    return Pipeline(
        name=name,
        file=document.path,
        state=state,
        schedule=schedule_of(found.get("schedule", "once")),
        is_full=found.get("mode") == "full",
        settings=_options(found.get("settings", {})),
        sources=tuple(_source(document, each, it) for each, it in found["sources"].items()),
        steps=tuple(steps[each] for each in order),
        sinks=tuple(
            _sink(document, it, document.line(("sinks", number)))
            for number, it in enumerate(found["sinks"])
        ),
        quarantine=_sink(
            document,
            {**quarantine, **found.get("quarantine", {})},
            document.line(("quarantine",)),
        ),
    )


def _options(found: Mapping[str, Any]) -> dict[str, str]:
    """Return options as Spark takes them: texts."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
    }


def _source(document: Document, name: str, found: Mapping[str, Any]) -> Source:
    options = _options(found.get("options", {}))
    on_error = next((name for name in options if name.lower() == "onerror"), None)
    malformed = cast("Action | None", malformed_of(found))
    if malformed is not None:
        options[on_error or "onError"] = "column"
    path = found.get("path")
    return Source(
        name=name,
        format=found["format"],
        path=found["table"] if path is None else local(document, path),
        schema=found.get("schema"),
        options=options,
        stream=is_followed(found),
        malformed=malformed,
        line=document.line(("sources", name)),
    )


def _step(document: Document, name: str, found: Mapping[str, Any]) -> Step:
    sql = found.get("sql")
    step = Step(
        name=name,
        inputs=inputs_of_sql(sql) if sql is not None else names(found["from"]),
        line=document.line(("steps", name)),
        sql=sql,
        python=found.get("python"),
        order=names(found["order"]) if "order" in found else None,
        rules=tuple(_rule(each, it) for each, it in found.get("expect", {}).items()),
    )
    if (it := found.get("watermark")) is not None:
        watermark = Watermark(
            column=it["column"],
            delay_us=duration_us(it["delay"]),
            delay=it["delay"],
            by=names(it["by"]) if "by" in it else None,
            action=it.get("action", "quarantine"),
        )
        step = dataclasses.replace(step, watermark=watermark)
    if (it := found.get("deduplicate")) is not None:
        within = it.get("within")
        deduplicate = Deduplicate(
            by=names(it["by"]),
            within_us=None if within is None else duration_us(within),
            within=within,
            action=it.get("action", "quarantine"),
        )
        step = dataclasses.replace(step, deduplicate=deduplicate)
    if (it := found.get("window")) is not None:
        step = dataclasses.replace(step, window_us=duration_us(it["length"]))
    return step


def _rule(name: str, found: str | Mapping[str, Any]) -> Rule:
    """Return a rule: its condition, or its condition and action."""
    if isinstance(found, str):
        return Rule(name, found, "quarantine")
    return Rule(name, found["check"], found.get("action", "quarantine"))


def _sink(document: Document, found: Mapping[str, Any], line: int) -> Sink:
    path = found.get("path")
    return Sink(
        step=found["from"],
        format=found.get("format", "parquet"),
        path="" if path is None else local(document, path),
        table=found.get("table"),
        partition_by=names(found.get("partition_by")),
        options=_options(found.get("options", {})),
        line=line,
        order_by=names(found["order_by"]) if "order_by" in found else None,
    )
