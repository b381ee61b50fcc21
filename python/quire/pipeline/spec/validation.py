"""
Validation of a pipeline file.

First the form of the file, by the models; then how its parts fit together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from quire.pipeline.spec.parts import (
    Deduplicate,
    Expectation,
    FileSource,
    FolderSink,
    Part,
    PipelineFile,
    PythonStep,
    Quarantine,
    QueueSink,
    QueueSource,
    RulesStep,
    Sink,
    SqlStep,
    TableSink,
    TableSource,
    Watermark,
    Window,
)
from quire.pipeline.spec.path_conflicts import check_paths
from quire.pipeline.spec.value_types import FUNCTION, NAME, is_url
from quire.pipeline.spec.yaml_lines import Document, Place

_Loc: TypeAlias = tuple[int | str, ...]

# The models of parts that have several forms, and of those with a key of their own.
_FORMS: Final[Mapping[tuple[object, object], type[Part]]] = {
    ("sources", "quire"): QueueSource,
    **{("sources", name): FileSource for name in ("parquet", "csv", "json")},
    ("sources", "table"): TableSource,
    ("steps", "<sql>"): SqlStep,
    ("steps", "<python>"): PythonStep,
    ("steps", "<rules>"): RulesStep,
    **{("sinks", name): FolderSink for name in ("parquet", "delta")},
    ("sinks", "quire"): QueueSink,
    ("sinks", "table"): TableSink,
}
_KEYS: Final[Mapping[object, type[Part]]] = {
    "watermark": Watermark,
    "deduplicate": Deduplicate,
    "window": Window,
    "quarantine": Quarantine,
}

_TYPES: Final = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
    "tuple_type": "a list",
}

_PATTERNS: Final = {
    NAME: "letters, digits and _, a letter first",
    FUNCTION: "module:function or file.py:function",
}

_APPEND_ONLY: Final = "a queue is append-only, and requires mode: incremental"


def schema() -> dict[str, Any]:
    """Return the JSON schema of a pipeline file."""
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return about | PipelineFile.model_json_schema()


def check_form(document: Document) -> PipelineFile:
    """
    Return the file's values.

    Raises:
        PipelineFileError: Values are missing, unknown or not of the expected form.

    """
    try:
        return PipelineFile.model_validate(document.values, context=document)
    except ValidationError as error:
        for found in error.errors(include_url=False):
            # Invalid items do not count: a list of them is reported as too short, too.
            if not (found["type"] == "too_short" and found["input"]):
                document.report(*_explained(document, found))
        raise document.error() from None


def _explained(document: Document, error: ErrorDetails) -> tuple[Place, str]:
    """Return the place of an error, and what was found and expected there."""
    place, context = _place(document, error["loc"]), error.get("ctx", {})
    if error["type"] == "missing":
        return place[:-1], f"missing: {place[-1]}"
    if error["type"] == "union_tag_not_found":
        return place, f"missing: {_unquoted(context['discriminator'])}"
    if error["type"] == "union_tag_invalid":
        key, expected = _unquoted(context["discriminator"]), _unquoted(context["expected_tags"])
        return (*place, key), f"found={context['tag']!r} expected: {expected}"
    return place, _problem(error, context)


def _problem(error: ErrorDetails, context: Mapping[str, Any]) -> str:
    kind, found = error["type"], f"found={error['input']!r:.60}"
    if kind == "extra_forbidden":
        return _unknown_key(error["loc"])
    if kind == "value_error":
        return str(context["error"])
    if kind.endswith("too_short"):
        return f"is empty: {found}"
    if kind == "literal_error":
        return f"{found} expected: {_unquoted(context['expected'])}"
    if kind == "string_pattern_mismatch":
        return f"{found} expected: {_PATTERNS[context['pattern']]}"
    return f"{found} expected: {_TYPES.get(kind) or error['msg'].removeprefix('expected: ')}"


def _place(document: Document, loc: _Loc) -> Place:
    """Return where a location is in the file, without the tags of unions that pydantic adds."""
    if loc and loc[0] in {"sources", "steps", "sinks"}:
        loc = loc[:2] + loc[3:]
    place: Place = ()
    for part in loc:
        if not str(part).startswith(("<", "[key]")):
            is_known = (*place, part) in document.lines
            place = (*place, part if is_known else str(part))
    return place


def _unknown_key(loc: _Loc) -> str:
    model = _model(loc)
    known = [field.alias or name for name, field in model.model_fields.items()]
    return model.hints.get(str(loc[-1])) or f"unknown key, expected: {', '.join(known)}"


def _model(loc: _Loc) -> type[Part]:
    """Return the model of the part that has the key at *loc*."""
    match loc:
        case (_,):
            return PipelineFile
        case (group, _, form, _):
            return _FORMS[group, form]
        case (_, _, _, "expect", _, _):
            return Expectation
        case _:
            return _KEYS[loc[-2]]


def _unquoted(quoted: str) -> str:
    """Return pydantic's list of alternatives without quotes and `or`."""
    return quoted.replace(" or ", ", ").replace("'", "")


def check_parts(document: Document, file: PipelineFile) -> None:
    """Report parts of a file that do not fit together."""
    for name in file.steps.keys() & file.sources.keys():
        line = document.line(("sources", name))
        document.report(("steps", name), f"the name is taken by a source, line {line}")
    if is_url(file.state):
        document.report(("state",), f"needs a folder on this machine: path={file.state}")
    _check_outputs(document, file)
    _check_mode(document, file)
    _check_graph(document, file)
    _check_tables(document, file)
    check_paths(document, file)


def _check_outputs(document: Document, file: PipelineFile) -> None:
    """Check that outputs, but Delta tables, are on this machine: batches are recorded there."""
    outputs: list[tuple[Place, Sink | Quarantine]] = [
        (("sinks", number), sink) for number, sink in enumerate(file.sinks)
    ]
    if file.quarantine is not None:
        outputs.append((("quarantine",), file.quarantine))
    for place, found in outputs:
        path = found.path or ""
        if is_url(path) and not path.startswith("file:") and found.format != "delta":
            what = "queue" if found.format == "quire" else "folder"
            document.report((*place, "path"), f"needs a {what} on this machine: path={path}")


def _check_mode(document: Document, file: PipelineFile) -> None:
    """Check settings that only one of the modes allows."""
    if file.is_full:
        if file.schedule.kind != "once":
            found = str(file.schedule)
            document.report(("schedule",), f"mode full needs schedule once: found={found!r}")
        for number, sink in enumerate(file.sinks):
            if sink.format == "quire":
                document.report(("sinks", number, "format"), _APPEND_ONLY)
        if file.quarantine is not None and file.quarantine.format == "quire":
            document.report(("quarantine", "format"), _APPEND_ONLY)
        return
    if not any(source.stream for source in file.sources.values()):
        document.report(
            ("sources",), "no source is streamed: set stream: true in one, or mode: full"
        )
    for name, source in file.sources.items():
        if source.malformed_action == "quarantine" and not source.stream:
            document.report(
                ("sources", name, "malformed"),
                "each batch reads a lookup again, and would quarantine the same rows each time:"
                " found=quarantine expected: drop, fail, warn",
            )


def _check_graph(document: Document, file: PipelineFile) -> None:
    """Check that every input exists, every output is read, and steps have an order."""
    known = [*file.sources, *file.steps]
    inputs: dict[Place, tuple[str, ...]] = {
        ("steps", name, "sql" if isinstance(step, SqlStep) else "from"): step.inputs
        for name, step in file.steps.items()
    }
    inputs |= {("sinks", n, "from"): (sink.step,) for n, sink in enumerate(file.sinks)}
    for place, names in inputs.items():
        for name in names:
            if name not in known:
                document.report(
                    place,
                    f"unknown source or step: found={name!r} expected: {', '.join(known)}",
                )
    read = {name for names in inputs.values() for name in names}
    for part, group in (("sources", file.sources), ("steps", file.steps)):
        for name in group.keys() - read:
            document.report((part, name), "unused: no step or sink reads it")
    try:
        sorted_steps(file)
    except CycleError as error:
        cycle: Sequence[str] = error.args[1]
        document.report(("steps", cycle[0]), f"steps form a cycle: {' <- '.join(cycle)}")


def sorted_steps(file: PipelineFile) -> list[str]:
    """
    Return the steps in an order in which they can be computed.

    Raises:
        CycleError: Steps depend on one another in a circle.

    """
    inputs = {name: step.inputs for name, step in file.steps.items()}
    return [name for name in TopologicalSorter(inputs).static_order() if name in inputs]


def _check_tables(document: Document, file: PipelineFile) -> None:
    """Check that no two sinks write the same table."""
    first: dict[str, int] = {}
    for number, sink in enumerate(file.sinks):
        if isinstance(sink, TableSink):
            other = first.setdefault(sink.table, number)
            if other != number:
                problem = f"sinks[{other}] writes the same table: table={sink.table}"
                document.report(("sinks", number), problem)
