"""Loading pipeline files; all problems of a file are reported at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from quire.pipeline.spec.parts import (
    FolderSink,
    Pipeline,
    PipelineFile,
    Quarantine,
    QueueSink,
    Sink,
)
from quire.pipeline.spec.schedule import schedule_of
from quire.pipeline.spec.validation import check_form, check_parts, sorted_steps
from quire.pipeline.spec.yaml_lines import Document, read


def load(path: str | Path) -> Pipeline:
    """
    Load and check a pipeline file; paths in it are relative to its folder.

    Raises:
        PipelineFileError: The file is not valid; the error lists all problems with their lines.
        OSError: The file cannot be read.

    """
    return assembled(*parsed(path))


def parsed(path: str | Path) -> tuple[Document, PipelineFile]:
    """
    Return a pipeline file of valid form, and its document, which lists any other problems.

    Raises:
        PipelineFileError: The form is not valid; the error lists all problems with their lines.
        OSError: The file cannot be read.

    """
    document = read(Path(path))
    file = check_form(document)
    check_parts(document, file)
    return document, file


def scheduled(pipeline: Pipeline, text: str) -> Pipeline:
    """
    Return a pipeline with another schedule than that of its file.

    Raises:
        ValueError: The text is not a schedule, or the pipeline's mode allows only `once`.

    """
    schedule = schedule_of(text)
    if pipeline.is_full and schedule.kind != "once":
        raise ValueError(f"mode full needs schedule once: found={text!r}")
    return dataclasses.replace(pipeline, schedule=schedule)


def assembled(document: Document, file: PipelineFile) -> Pipeline:
    """
    Return the pipeline of a checked file.

    Raises:
        PipelineFileError: The file has problems; the error lists them with their lines.

    """
    if document.problems:
        raise document.error()
    for part, group in (("sources", file.sources), ("steps", file.steps)):
        for name, it in group.items():
            it.locate(name, document.line((part, name)))
    for number, sink in enumerate(file.sinks):
        sink.locate("", document.line(("sinks", number)))
    state = (document.path.parent / file.state).resolve() / file.pipeline
    quarantine = _quarantine(file.quarantine or Quarantine(path=str(state / "quarantine")))
    quarantine.locate("", document.line(("quarantine",)))
    return Pipeline(
        name=file.pipeline,
        file=document.path,
        state=state,
        schedule=file.schedule,
        is_full=file.is_full,
        settings=file.settings,
        sources=tuple(file.sources.values()),
        steps=tuple(file.steps[name] for name in sorted_steps(file)),
        sinks=file.sinks,
        quarantine=quarantine,
    )


def _quarantine(found: Quarantine) -> Sink:
    """Return the sink of rows in quarantine."""
    if found.format == "quire":
        return QueueSink.model_construct(**dict(found), step="")
    return FolderSink.model_construct(**dict(found), step="")
