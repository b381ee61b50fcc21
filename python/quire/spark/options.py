"""The options of the data source, checked before any data is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from quire.errors import QuireError

RECORDS_PER_PARTITION: Final = 1_000_000
BATCH_ROWS: Final = 32_768
BATCH_ROWS_MAX: Final = 1_048_576

_NAMES: Final = ("path", "columns", "recordsPerPartition", "batchRows")


class OptionsError(QuireError, ValueError):
    """Options or a schema that the data source cannot work with; lists everything wrong."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """
    What a read was asked for.

    Attributes:
        path: The queue's directory, absolute.
        columns: The columns as the user wrote them, or None for the default ones.
        records_per_partition: How many messages one task reads, about.
        batch_rows: How many rows one Arrow batch holds, at most.

    """

    path: str
    columns: str | None = None
    records_per_partition: int = RECORDS_PER_PARTITION
    batch_rows: int = BATCH_ROWS

    @staticmethod
    def of(options: Mapping[str, str]) -> ReadOptions:
        """
        Read Spark's options; case does not matter.

        Raises:
            OptionsError: Some are unknown, missing or out of range; all of them are listed.

        """
        given = {name.lower(): value for name, value in options.items()}
        problems: list[str] = []
        read = ReadOptions(
            path=_directory(given.get("path", ""), problems.append),
            columns=given.get("columns"),
            records_per_partition=_count(
                given, "recordsPerPartition", RECORDS_PER_PARTITION, None, problems.append
            ),
            batch_rows=_count(given, "batchRows", BATCH_ROWS, BATCH_ROWS_MAX, problems.append),
        )
        known = {name.lower() for name in _NAMES}
        problems += [f"unknown option: {name}" for name in options if name.lower() not in known]
        refuse(problems)
        return read


def refuse(problems: list[str]) -> None:
    """
    Do nothing, or report every problem in one line.

    Raises:
        OptionsError: There are problems.

    """
    if problems:
        raise OptionsError(f"quire source: {'; '.join(problems)}")


def _directory(path: str, report: Callable[[str], None]) -> str:
    """Return the absolute path; ``file:`` addresses are understood."""
    local = unquote(urlsplit(path).path) if path.startswith("file:") else path
    if not local:
        report("path is missing: use .load(path)")
    elif not Path(local).is_dir():
        report(f"path is not a directory: path={local}")
    return str(Path(local).absolute())


def _count(
    given: Mapping[str, str],
    name: str,
    default: int,
    maximum: int | None,
    report: Callable[[str], None],
) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    value = int(text) if text.strip().isdecimal() else 0
    if value < 1 or (maximum is not None and value > maximum):
        bound = "" if maximum is None else f" of at most {maximum}"
        report(f"{name} is not a positive whole number{bound}: {name}={text}")
    return value
