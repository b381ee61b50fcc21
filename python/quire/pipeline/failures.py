"""Errors of a running pipeline, each on one line: the place in the file, and the reason."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException

from quire.errors import PipelineError, QuireError
from quire.pipeline.spec.parts import Pipeline

_TRACE: Final = "Traceback (most recent call last)"


def failed(pipeline: Pipeline, part: str, line: int, error: BaseException) -> PipelineError:
    """Return the error for a *part* of the pipeline that failed, with its reason."""
    if isinstance(error, PipelineError):
        return error
    return PipelineError(
        f"{pipeline.file}:{line}: {part} failed: pipeline={pipeline.name}: {reason(error)}"
    )


@contextmanager
def named(pipeline: Pipeline, part: str, line: int) -> Generator[None]:
    """
    Raise errors of a part of the pipeline with its name and line.

    Raises:
        PipelineError: The part failed.

    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever Spark or a transform raises
        raise failed(pipeline, part, line, error) from None


def reason(error: BaseException) -> str:
    """Return the essential line of an error, without Spark's stack traces."""
    message = getattr(error, "getMessage", None)
    text = str((message() if callable(message) else None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(_TRACE in line for line in lines):
        lines = [_last_of_trace(lines)]
    elif lines and "SQLSTATE" in text:
        lines = [line for line in lines if not line.startswith(("==", "'", "+-", ":-", "^"))][:1]
    words = " ".join(lines[:3]).split(" SQLSTATE:")[0].removesuffix(";")
    if isinstance(error, QuireError | PySparkException):
        return words
    return f"{type(error).__name__}: {words}{_place(error)}"


def _place(error: BaseException) -> str:
    """Return the file and line of the function that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _last_of_trace(lines: list[str]) -> str:
    """Return the last line of a Python traceback, which Java's may follow."""
    start = max(n for n, line in enumerate(lines) if _TRACE in line)
    python = [
        line for line in lines[start + 1 :] if not line.startswith(("at ", "...", "Caused by:"))
    ]
    named = [line for line in python if not line.startswith(("File ", "SQLSTATE")) and ":" in line]
    return (named or python or lines)[-1]
