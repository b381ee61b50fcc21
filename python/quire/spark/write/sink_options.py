"""The options of a write, checked with the columns before any task runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

import quire
from quire.arrow.encoder import FORMS, Encoder
from quire.arrow.schema import Schema
from quire.errors import NotAQueueError, QuireError
from quire.formats.adapters import adapter_at
from quire.formats.detection import CHRONICLE
from quire.opening.wire_types import FIELDLESS, stored_wire_type
from quire.remote.address import is_remote
from quire.remote.queue import open_remote
from quire.sealed.key_source import KeySource
from quire.spark.source_options import Given, refuse
from quire.spark.spark_columns import METADATA, arrow_schema, has_variant, schema_of
from quire.spark.topics import TABLE, local_path
from quire.spark.write.sink_places import LocalPlace, Place, ServedPlace
from quire.staged.batch_target import Target
from quire.staged.commits import BLOCK_BYTES
from quire.staged.staging import WRITER

_NAMES: Final = (
    "path",
    "form",
    "type",
    "method",
    "schema",
    "omitNulls",
    "rollCycle",
    "wireType",
    "writeId",
    "batchId",
    "stagingLocation",
    "sync",
    "blockBytes",
    "token",
    "tls",
    "keyFile",
    "keyVariable",
)
OF_A_TABLE: Final = (
    "Spark does not pass the path of a table to a Python source: insert into NAME with (path"
    " '/data/queue') …, or into a temp view: create temp view NAME (symbol string) using quire"
    " options (path '/data/queue')"
)
NOT_A_NEW_TABLE: Final = (
    "quire sink: a table created from rows (saveAsTable, create table … as select) could not be"
    " read, because Spark does not pass its path to the source; nothing was written. Write with"
    " .save(path); then create temp view NAME using quire options (path '/data/queue'), or a table:"
    " create table NAME using quire options (path '/data/queue')"
)
_SMALL_BLOCK: Final = 64 << 10
_LONGEST: Final = (1 << 30) - 1
_SPARKS_OWN: Final = ("checkpointLocation",)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """
    The options of a write.

    Attributes:
        place: The queue.
        block_bytes: By how much the queue's files grow.
        write_id: The name by which a repetition of the write is recognised; None: it is not.
        batch_id: The number of the write among those with the same name.
        encoding: The arguments of :class:`quire.arrow.encoder.Encoder`.

    """

    place: Place
    block_bytes: int = BLOCK_BYTES
    write_id: str | None = None
    batch_id: int = 0
    encoding: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def longest(self) -> int:
        """The length of the longest message, by the kernel's rule or less in very small blocks."""
        block = self.block_bytes
        return min(max(block // 4, min(block, _SMALL_BLOCK)), _LONGEST)

    @staticmethod
    def of(options: Mapping[str, str], columns: StructType, *, overwrite: bool) -> WriteOptions:
        """
        Parse Spark's options.

        Raises:
            OptionsError: Options are not valid, or the columns cannot become messages; the error
                lists every problem.

        """
        problems: list[str] = []
        if overwrite:
            problems.append(
                "messages of a queue are never replaced, so mode=overwrite and outputMode=complete"
                " are not supported: use append, or another path for new content"
            )
        given = Given(options, problems.append)
        found = _options(given, problems.append)
        _check_columns(columns, found.encoding, problems)
        given.unknown((*_NAMES, *_SPARKS_OWN))
        refuse(problems, "sink")
        return found


def check_names(options: Mapping[str, str]) -> None:
    """
    Check that all names of a sink's options are known.

    Raises:
        OptionsError: Options are unknown; the error lists their names.

    """
    problems: list[str] = []
    Given(options, problems.append).unknown((*_NAMES, *_SPARKS_OWN))
    refuse(problems, "sink")


def messages_in(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns to write, without those that the source adds to messages."""
    return batch.select([name for name in batch.schema.names if name not in METADATA])


def _options(given: Given, report: Callable[[str], None]) -> WriteOptions:
    given_path = given.text("path") or ""
    if is_remote(given_path):
        return _served(given_path, given, report)
    path = local_path(given_path)
    given.refuse_server(path)
    if not path:
        report(f"path is missing: use .save(path) or .start(path); {OF_A_TABLE}")
    roll_cycle, wire_type, key = given.text("rollCycle"), given.text("wireType"), given.key()
    if path:
        wire_type = _look_at(path, roll_cycle, wire_type, key, report)
    block_bytes = given.count("blockBytes", BLOCK_BYTES)
    options = {"roll_cycle": roll_cycle, "wire_type": wire_type, "block_bytes": block_bytes}
    location = given.text("stagingLocation")
    target = Target(
        path,
        options,
        sync=given.flag("sync", default=True),
        location=None if location is None else local_path(location),
        key=key,
    )
    write_id, batch_id = _identity(given, report)
    return WriteOptions(
        place=LocalPlace(target),
        block_bytes=block_bytes,
        write_id=write_id,
        batch_id=batch_id,
        encoding=_encoding(given, report, is_fieldless=(wire_type or "").upper() == FIELDLESS),
    )


def _identity(given: Given, report: Callable[[str], None]) -> tuple[str | None, int]:
    """Return the name and number by which a repetition of the write is recognised."""
    write_id = given.text("writeId")
    if write_id is not None and not WRITER.fullmatch(write_id):
        report(
            "writeId may have letters, digits, '_', '.' and '-', and must not be lock:"
            f" writeId={write_id}"
        )
    batch_id = given.text("batchId")
    if batch_id is not None and (write_id is None or not re.fullmatch(r"\d{1,18}", batch_id)):
        report(
            f"batchId must be a number, and requires writeId: batchId={batch_id} writeId={write_id}"
        )
        batch_id = None
    return write_id, int(batch_id or 0)


def _encoding(given: Given, report: Callable[[str], None], *, is_fieldless: bool) -> dict[str, Any]:
    return {
        "form": given.choice("form", {form: form for form in FORMS}, None),
        "type": given.text("type"),
        "method": given.text("method"),
        "schema": _schema(given.text("schema"), report),
        "omit_nulls": given.flag("omitNulls", default=False),
        "fieldless": is_fieldless,
    }


def _served(address: str, given: Given, report: Callable[[str], None]) -> WriteOptions:
    """Return the options of a write to a queue of a server, created if it does not exist."""
    for name in ("stagingLocation", "blockBytes"):
        if given.text(name) is not None:
            report(f"{name} is only for queues of this machine: omit it for a server")
    if given.key().is_known:
        report("keyFile and keyVariable are only for queues of this machine: a server has no key")
    server = given.server()
    asked = {"roll_cycle": given.text("rollCycle"), "wire_type": given.text("wireType")}
    made = {name: text for name, text in asked.items() if text is not None}
    wire_type = made.get("wire_type", "").upper()
    try:
        found = _look_at_server(address, server, made, report)
        wire_type = wire_type if found is None else found
    except (QuireError, OSError, ValueError) as error:
        report(f"cannot open the queue: {error}")
    write_id, batch_id = _identity(given, report)
    sync = given.flag("sync", default=True)
    return WriteOptions(
        place=ServedPlace(address, server, {"format": CHRONICLE, **made}, sync),
        write_id=write_id,
        batch_id=batch_id,
        encoding=_encoding(given, report, is_fieldless=wire_type == FIELDLESS),
    )


def _look_at_server(
    address: str,
    server: Mapping[str, Any],
    made: Mapping[str, str],
    report: Callable[[str], None],
) -> str | None:
    """Check the options against an existing queue, and return its wire type."""
    try:
        queue = open_remote(
            address, {**server, "create": False, "roll_cycle": made.get("roll_cycle")}
        )
    except NotAQueueError:
        return None
    with queue:
        if queue.read_only:
            report(f"the server has the queue only for reading: path={address}")
        if queue._link.format != CHRONICLE:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            report(
                "a sink writes only to a Chronicle Queue, where it can record batches among the"
                f" messages: path={address}"
            )
            return None
        found, wanted = queue.wire_type, made.get("wire_type")
        if wanted is not None and wanted.upper() != found:
            report(f"the queue has another wire type: wireType={wanted} found={found}")
        return found


def _look_at(
    path: str,
    roll_cycle: str | None,
    wire_type: str | None,
    key: KeySource,
    report: Callable[[str], None],
) -> str | None:
    """Check the options against an existing queue; return the wire type to write with."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        report(f"path is not a directory: path={path}")
        return wire_type
    inside = next(folder.glob(f"*/**/{TABLE}"), None) if folder.is_dir() else None
    if inside is not None and not (folder / TABLE).exists():
        report(
            f"path is a directory of queues, give the path of one: path={path}"
            f" found={inside.parent}"
        )
    try:
        adapter = adapter_at(path)
        if adapter is not None and not adapter.is_wire:
            report(
                "a sink writes only to a Chronicle Queue, where it can record batches among the"
                f" messages: path={path} format={adapter.name}"
            )
            return wire_type
        ring = key.ring()  # also for a queue that does not exist yet
        if ring is not None:
            ring.check_current()
        with quire.open(
            path,
            read_only=True,
            roll_cycle=roll_cycle,
            wire_type=wire_type,
            key=None if adapter is None else ring,
        ) as queue:
            found = queue.roll_cycle.name
        if roll_cycle not in {None, found}:
            report(f"the queue has another roll cycle: rollCycle={roll_cycle} found={found}")
        stored = stored_wire_type(path)
        if stored is not None and (wire_type or stored).upper() != stored:
            report(f"the queue has another wire type: wireType={wire_type} found={stored}")
        wire_type = wire_type or stored
    except NotAQueueError:
        pass
    except (QuireError, OSError, ValueError) as error:
        report(f"cannot open the queue: {error}")
    return wire_type


def _schema(text: str | None, report: Callable[[str], None]) -> Schema | None:
    if text is None:
        return None
    try:
        if (found := schema_of(text)) is None:
            report(f"schema must be the text of a quire.Schema, or module:Name: schema={text}")
    except (ValueError, TypeError, ImportError, AttributeError, QuireError) as error:
        report(f"schema={text}: {error}")
        return None
    return found


def _check_columns(columns: StructType, encoding: dict[str, Any], problems: list[str]) -> None:
    fields = StructType([it for it in columns if it.name not in METADATA])
    if not fields.names:
        problems.append(
            "there is no column to write, only those that the source adds:"
            f" columns={', '.join(columns.names)}"
        )
        return
    if variants := [it.name for it in fields if has_variant(it.dataType)]:
        problems.append(
            f"a message cannot hold a variant: column={variants[0]}, write to_json({variants[0]}),"
            " or variant_get with a type"
        )
        return
    if others := [it for it in fields if not _has_values(it)]:
        kind = others[0].dataType.simpleString()
        problems.append(
            f"messages hold no values of this type: column={others[0].name} type={kind}"
            " (cast it, or leave it out)"
        )
        return
    try:
        Encoder(arrow_schema(fields), **encoding)
    except (PySparkException, ValueError) as error:
        problems.append(str(error))


def _has_values(field: StructField) -> bool:
    """Return whether Arrow supports the type; it lacks that of the elements of ``array()``."""
    try:
        arrow_schema(StructType([field]))
    except (PySparkException, ValueError):
        return False
    return True
