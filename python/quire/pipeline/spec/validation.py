"""What can be wrong with a pipeline's file: its form by JSON schema, and what no schema knows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from string import Formatter
from typing import Any, Final, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from quire.pipeline.spec.durations import duration_us, schedule_of
from quire.pipeline.spec.model import RESERVED
from quire.pipeline.spec.path_conflicts import check_paths, is_address
from quire.pipeline.spec.yaml_lines import Document, Place

_KINDS: Final = {
    "object": "names and values",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
}


_APPENDED: Final = "a queue is only appended to: needs mode incremental"


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of a pipeline's file."""
    found: dict[str, Any] = json.loads((files("quire.pipeline") / "schema.json").read_bytes())
    return found


def check_form(document: Document) -> None:
    """Report every value that the JSON schema does not allow."""
    for error in Draft202012Validator(schema()).iter_errors(document.values):
        for place, problem in _told(error):
            document.report(place, problem)


def _told(error: ValidationError) -> Iterator[tuple[Place, str]]:
    """Yield where an error is, and what was found and allowed there."""
    place: Place = tuple(error.absolute_path)
    rule = error.validator
    value: Any = error.instance
    wanted: Any = error.validator_value
    if rule == "additionalProperties":
        known = cast("dict[str, dict[str, Any]]", error.schema)["properties"]
        for name in value.keys() - known:
            yield (*place, str(name)), f"unknown key, allowed: {', '.join(known)}"
    elif rule == "required":
        missing = [name for name in wanted if name not in value]
        yield place, f"missing: {', '.join(missing)}"
    elif rule == "enum":
        yield place, f"found={value!r} allowed: {', '.join(map(str, wanted))}"
    elif rule == "oneOf":
        yield from _told_of_choice(error)
    elif rule == "type":
        kinds = [wanted] if isinstance(wanted, str) else cast("list[str]", wanted)
        allowed = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
        yield place, f"found={_short(value)} allowed: {allowed}"
    elif rule == "pattern":
        allowed = (
            "module:function or file.py:function"
            if ":" in wanted
            else ("letters, digits and _, a letter first")
        )
        yield place, f"found={value!r} allowed: {allowed}"
    else:
        yield place, f"found={_short(value)}: is empty"


def _told_of_choice(error: ValidationError) -> Iterator[tuple[Place, str]]:
    """Tell what is wrong with the form that the value has; of no form, which there are."""
    same_kind = [it for it in error.context or () if it.validator != "type" or it.path]
    for within in same_kind:
        yield from _told(within)
    if not same_kind:
        kinds = [str(it.validator_value) for it in error.context or ()]
        allowed = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
        yield tuple(error.absolute_path), f"found={_short(error.instance)} allowed: {allowed}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - fits on a line


def names(value: object) -> tuple[str, ...]:
    """Return one name or several as several."""
    if isinstance(value, str):
        return (value,)
    return tuple(cast("list[str]", value)) if isinstance(value, list) else ()


def inputs_of_sql(sql: str) -> tuple[str, ...]:
    """
    Return the names in braces, each once.

    Raises:
        ValueError: Braces do not match.

    """
    found = [name for _, name, _, _ in Formatter().parse(sql) if name is not None]
    return tuple(dict.fromkeys(found))


def check_meaning(document: Document) -> None:
    """Report what is allowed by its form, and makes no sense. The form has been checked."""
    found = document.values
    sources: Mapping[str, Any] = found["sources"]
    steps: Mapping[str, Any] = found.get("steps") or {}
    for name in steps.keys() & sources.keys():
        line = document.line(("sources", name))
        document.report(("steps", name), f"the name is taken by a source, line {line}")
    is_full = found.get("mode") == "full"
    _check_schedule(document, is_full=is_full)
    for name, source in sources.items():
        _check_source(document, ("sources", name), source, is_full=is_full)
    if not is_full and not any(is_followed(source) for source in sources.values()):
        document.report(("sources",), "none is followed: set stream: true, or mode: full")
    inputs = {name: _check_step(document, name, step) for name, step in steps.items()}
    _check_graph(document, sources, inputs)
    tables: dict[str, int] = {}
    for number, sink in enumerate(found["sinks"]):
        place = ("sinks", number)
        if sink["from"] not in steps and sink["from"] not in sources:
            document.report((*place, "from"), _unknown(sink["from"], [*sources, *steps]))
        _check_sink(document, place, sink, is_full=is_full)
        if (table := sink.get("table")) is not None:
            other = tables.setdefault(table, number)
            if other != number:
                document.report(place, f"sinks[{other}] writes there too: {table}")
    if found.get("quarantine", {}).get("format") == "quire" and is_full:
        document.report(("quarantine", "format"), _APPENDED)
    if is_address(found.get("state", "")):
        document.report(("state",), f"needs a folder that the driver sees: path={found['state']}")
    check_paths(document)


def is_followed(source: Mapping[str, Any]) -> bool:
    """Return whether a source is read from batch to batch, not whole."""
    return bool(source.get("stream", source["format"] == "quire"))


def malformed_of(source: Mapping[str, Any]) -> str | None:
    """Return what happens to messages that do not decode; None if the source fails by itself."""
    if (found := source.get("malformed")) is not None:
        return str(found)
    options: Mapping[str, Any] = source.get("options", {})
    is_kept = any(it.lower() == "onerror" and options[it] == "column" for it in options)
    return "quarantine" if is_kept else None


def order_of(inputs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """
    Return steps in an order in which they can be computed.

    Raises:
        CycleError: There is none.

    """
    return [name for name in TopologicalSorter(inputs).static_order() if name in inputs]


def _unknown(name: str, known: list[str]) -> str:
    return f"no such source or step: found={name!r} allowed: {', '.join(known)}"


def _try(document: Document, place: Place, parse: Callable[[str], object], text: object) -> None:
    """Report a text that cannot be parsed."""
    if isinstance(text, str):
        try:
            parse(text)
        except ValueError as error:
            document.report(place, str(error))


def _check_schedule(document: Document, *, is_full: bool) -> None:
    text = document.values.get("schedule", "once")
    _try(document, ("schedule",), schedule_of, text)
    if is_full and text.strip().lower() != "once":
        document.report(("schedule",), f"mode full needs schedule once: found={text!r}")


def _check_source(
    document: Document, place: Place, source: Mapping[str, Any], *, is_full: bool
) -> None:
    wanted = "table" if source["format"] == "table" else "path"
    other = "path" if wanted == "table" else "table"
    if wanted not in source:
        document.report(place, f"missing: {wanted}")
    if other in source:
        document.report((*place, other), f"not for format {source['format']}")
    if "malformed" in source and source["format"] != "quire":
        document.report((*place, "malformed"), "for format quire alone")
    if malformed_of(source) == "quarantine" and not is_followed(source) and not is_full:
        document.report(
            (*place, "malformed"),
            "a lookup is read again by each batch, and would send its rows to quarantine each time:"
            " found=quarantine allowed: drop, fail, warn",
        )
    if source["format"] == "table" and source.get("stream"):
        document.report((*place, "stream"), "a table is read whole")


def _check_step(document: Document, name: str, step: Mapping[str, Any]) -> tuple[str, ...]:
    """Check one step, and return its inputs."""
    place: Place = ("steps", name)
    inputs = names(step.get("from"))
    if "sql" in step and "python" in step:
        document.report((*place, "python"), "a step has sql or python, not both")
    if "sql" in step:
        if "from" in step:
            document.report((*place, "from"), "SQL names what it reads in braces: from {trades}")
        try:
            inputs = inputs_of_sql(step["sql"])
        except ValueError as error:
            document.report((*place, "sql"), f"braces: {error}")
        if not inputs:
            document.report((*place, "sql"), "reads nothing: name a source or step in braces")
    elif not inputs:
        document.report(place, "missing: from")
    elif "python" not in step and len(inputs) > 1:
        document.report((*place, "from"), "several inputs need sql or python")
    if "python" in step:
        _check_python(document, (*place, "python"), step["python"])
    _check_rules(document, place, step)
    return inputs


def _check_python(document: Document, place: Place, where: str) -> None:
    file = where.rpartition(":")[0]
    if file.endswith(".py"):
        path = document.path.parent / file
        if not path.is_file():
            document.report(place, f"no such file: path={path}")
    elif not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", file):
        document.report(place, f"found={where!r} allowed: module:function or file.py:function")


def _check_rules(document: Document, place: Place, step: Mapping[str, Any]) -> None:
    for rule in step.get("expect", {}):
        if rule in RESERVED:
            document.report((*place, "expect", rule), f"reserved names: {', '.join(RESERVED)}")
    for key, name in (("watermark", "delay"), ("deduplicate", "within"), ("window", "length")):
        text = step.get(key, {}).get(name)
        _try(document, (*place, key, name), duration_us, text)
    if "watermark" not in step:
        if "window" in step:
            document.report((*place, "window"), "needs a watermark in the same step")
        if "within" in step.get("deduplicate", {}):
            document.report((*place, "deduplicate", "within"), "needs a watermark in the same step")


def _check_graph(
    document: Document, sources: Mapping[str, Any], inputs: Mapping[str, tuple[str, ...]]
) -> None:
    known = [*sources, *inputs]
    read = {sink["from"] for sink in document.values["sinks"]}
    for name, own in inputs.items():
        read.update(own)
        for other in own:
            if other not in known:
                key = "sql" if "sql" in document.values["steps"][name] else "from"
                document.report(("steps", name, key), _unknown(other, known))
    for part, group in (("sources", sources), ("steps", inputs)):
        for name in group.keys() - read:
            document.report((part, name), "nothing reads it: no step and no sink")
    try:
        order_of(inputs)
    except CycleError as error:
        cycle: list[str] = error.args[1]
        document.report(("steps", cycle[0]), f"steps in a circle: {' <- '.join(cycle)}")


def _check_sink(
    document: Document, place: Place, sink: Mapping[str, Any], *, is_full: bool
) -> None:
    kind = sink["format"]
    if kind == "table" and "table" not in sink:
        document.report(place, "missing: table")
    if kind != "table" and "path" not in sink:
        document.report(place, "missing: path")
    if kind != "table" and "table" in sink:
        document.report((*place, "table"), f"not for format {kind}")
    if kind == "quire" and "partition_by" in sink:
        document.report((*place, "partition_by"), "a queue has no partitions")
    if kind == "quire" and is_full:
        document.report((*place, "format"), _APPENDED)
