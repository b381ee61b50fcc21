"""The options of the data source, validated before any data is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from quire._common.units import duration_us
from quire.errors import OptionsError
from quire.formats.detection import FORMATS, Format
from quire.ranges.event_time import UNITS_NS, TimeField
from quire.remote.address import is_remote
from quire.remote.place import RemotePlace
from quire.sealed.key_source import KeySource
from quire.spark.read.offsets import EARLIEST, LATEST, Bound, parse_offsets, parse_time
from quire.spark.topics import local_path

RECORDS_PER_PARTITION: Final = 1_000_000
BATCH_ROWS: Final = 32_768
BATCH_ROWS_MAX: Final = 1_048_576
SAMPLE_ROWS: Final = 1_000
# The default of Spark's connector for Kafka.
MAX_DELAY_US: Final = 15 * 60 * 1_000_000

_NAMES: Final = (
    "path",
    "topics",
    "topicsPattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "timestampField",
    "timestampUnit",
    "columns",
    "schema",
    "method",
    "inferSchema",
    "sampleRows",
    "recordsPerPartition",
    "minPartitions",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "batchRows",
    "failOnDataLoss",
    "wireType",
    "queueFormat",
    "onError",
    "token",
    "tls",
    "keyFile",
    "keyVariable",
    "allowPlain",
)

OF_A_TABLE: Final = (
    "if this is a table that was created with columns, Spark passes neither its options nor its"
    " location: create it without columns, create table NAME using quire options"
    " (path '/data/queue', schema 'symbol string'), or create a temp view with these options"
)

# Options that require another one.
_NEEDS: Final = {
    "sampleRows": "inferSchema",
    "timestampUnit": "timestampField",
    "maxTriggerDelay": "minOffsetsPerTrigger",
}

_T = TypeVar("_T")

_WIRE_TYPES: Final[Mapping[str, str | None]] = {
    name.lower(): name
    for name in ("BINARY_LIGHT", "BINARY", "FIELDLESS_BINARY", "COMPRESSED_BINARY")
}

_QUEUE_FORMATS: Final[Mapping[str, Format | None]] = {name: name for name in FORMATS}

_NO_KEY: Final = KeySource()
_START: Final = Bound(EARLIEST)
_END: Final = Bound(LATEST)


class Given:
    """
    Options as Spark passes them; names are case-insensitive.

    Args:
        options: The options by name.
        report: Called with each problem.

    """

    def __init__(self, options: Mapping[str, str], report: Callable[[str], None]) -> None:
        """Convert the names to lower case."""
        self._values = {name.lower(): value for name, value in options.items()}
        self.report = report

    def text(self, name: str) -> str | None:
        """Return the text of an option; None if absent."""
        return self._values.get(name.lower())

    def choice(self, name: str, choices: Mapping[str, _T], default: _T) -> _T:
        """Return the value for one of several words."""
        text = self.text(name)
        if text is None:
            return default
        if (word := text.strip().lower()) not in choices:
            self.report(f"{name} must be one of {', '.join(choices)}: {name}={text}")
            return default
        return choices[word]

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        return self.choice(name, {"true": True, "false": False}, default)

    def count(self, name: str, default: int, maximum: int | None = None) -> int:
        """Return a positive whole number."""
        text = self.text(name)
        if text is None:
            return default
        value = int(text) if text.strip().isdecimal() else 0
        if value < 1 or (maximum is not None and value > maximum):
            bound = "" if maximum is None else f" of at most {maximum}"
            self.report(f"{name} must be a positive whole number{bound}: {name}={text}")
        return value

    def optional_count(self, name: str) -> int | None:
        """Return a positive whole number; None if the option is not given."""
        return None if self.text(name) is None else self.count(name, 1)

    def duration_us(self, name: str, default: int) -> int:
        """Return the microseconds of a duration."""
        text = self.text(name)
        try:
            return default if text is None else duration_us(text)
        except ValueError as error:
            self.report(f"{name}: {error}")
            return default

    def pattern(self, name: str) -> str | None:
        """Return a regular expression."""
        text = self.text(name)
        try:
            re.compile(text or "")
        except re.error as error:
            self.report(f"{name} is not a regular expression, {error}: {name}={text}")
            return None
        return text

    def refuse_server(self, path: str) -> None:
        """Report options that require the address of a server."""
        for name in ("token", "tls"):
            if self.text(name) is not None:
                self.report(
                    f"{name} requires an address such as quire://HOST:PORT/QUEUE: path={path}"
                )

    def directory(self) -> str:
        """Return the path, absolute."""
        path = self.text("path") or ""
        if is_remote(path):
            return self._address(path)
        path = local_path(path)
        self.refuse_server(path)
        if (paths := self.text("paths")) is not None:
            self.report(
                "load takes one directory: load a directory above them, and select some by topics;"
                f" or unite a frame of each: paths={paths:.200}"
            )
        elif not path:
            self.report(f"path is missing: use .load(path); {OF_A_TABLE}")
        elif not Path(path).is_dir():
            self.report(f"path is not a directory: path={path}")
        return path

    def _address(self, path: str) -> str:
        if self.text("wireType") is not None:
            self.report("wireType is only for queues of this machine: omit it for a server")
        try:
            return str(RemotePlace.of(path))
        except OptionsError as error:
            self.report(str(error))
            return path

    def server(self) -> dict[str, Any]:
        """Return the token and ``tls``; a PEM file is read here, and its content passed on."""
        found: dict[str, Any] = {}
        if (token := self.text("token")) is not None:
            found["token"] = token
        tls = self.text("tls")
        if tls is None or tls.strip().lower() == "false":
            return found
        if tls.strip().lower() == "true":
            return found | {"tls": True}
        try:
            return found | {"tls": Path(local_path(tls)).read_bytes()}
        except OSError as error:
            self.report(f"tls must be true, or a readable PEM file: tls={tls} ({error.strerror})")
            return found

    def key(self) -> KeySource:
        """Return where each process finds the key of encrypted queues."""
        file, variable = self.text("keyFile"), self.text("keyVariable")
        if file is not None and variable is not None:
            self.report("give keyFile or keyVariable, not both")
        allow_plain = self.flag("allowPlain", default=False)
        if allow_plain and file is None and variable is None:
            self.report("allowPlain is for encrypted queues: give keyFile or keyVariable, too")
        return KeySource(None if file is None else local_path(file), variable, allow_plain)

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return names given with commas or as a JSON array; None if the option is not given."""
        text = self.text(name)
        if text is None:
            return None
        try:
            found = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
            names = tuple(dict.fromkeys(filter(None, (str(each).strip() for each in found))))
        except ValueError:
            self.report(f"{name} is not a JSON array: {name}={text!r:.80}")
            return ()
        if not names:
            self.report(f"{name} is empty: {name}={text}")
        return names

    def bound(self, side: str, offset: str) -> Bound:
        """Return one end of the read, given by options ``starting…`` or ``ending…``."""
        offsets, time = f"{side}Offsets", f"{side}Timestamp"
        given, moment = self.text(offsets), self.text(time)
        if given is not None and moment is not None:
            self.report(f"give {offsets} or {time}, not both")
        found = None if given is None else parse_offsets(given, offsets, offset, self.report)
        time_ns = None if moment is None else parse_time(moment, time, self.report)
        return (found or Bound(offset))._replace(time_ns=time_ns)

    def unknown(self, known: tuple[str, ...]) -> None:
        """Report unknown options."""
        lower = {name.lower(): name for name in known}
        for name in sorted(self._values.keys() - lower.keys() - {"paths"}):
            close = get_close_matches(name, lower, n=1)
            meant = f", did you mean {lower[close[0]]}?" if close else ""
            self.report(f"unknown option: {name}{meant} (known: {', '.join(known)})")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """
    The options of a read.

    Attributes:
        path: The absolute path of a queue, or of a directory of queues; or the address of a server
            or of a queue there.
        topics: The names of the topics to read; None: all.
        starting: The first message of the read.
        ending: The first message after the read.
        time_field: The event time field; None: take the time from the history.
        columns: The columns as the user wrote them; None: the default ones.
        schema: The structure of the messages: text of a schema, a class, or columns; or None.
        method: The method whose calls are rows; None: all methods.
        infer_schema: Whether to infer the structure of the messages.
        sample_rows: How many messages of each topic to infer from.
        records_per_partition: The largest number of messages that one task reads.
        min_partitions: The smallest number of tasks, if there are enough messages.
        max_per_trigger: The largest number of messages in a batch of a stream; None: no limit.
        min_per_trigger: How many messages a batch of a stream waits for; None: do not wait.
        max_delay_us: How long after the last batch it waits at most, in microseconds.
        parallelism: How many tasks run at once; None: unknown.
        topics_pattern: A pattern that matches the whole names of topics to read; None: all.
        batch_rows: The largest number of rows in an Arrow batch.
        fail_on_data_loss: Whether messages that are gone are an error.
        wire_type: The wire type; None: the one in the files.
        queue_format: The only format that queues may have; None: any.
        key: Where to find the key of encrypted queues.
        keep_errors: Whether malformed messages are rows with ``_error``.
        given: The names of the options that were given, in lower case.
        server: The token and ``tls``, if the path is an address. Never shown.

    """

    path: str
    topics: tuple[str, ...] | None = None
    starting: Bound = _START
    ending: Bound = _END
    time_field: TimeField | None = None
    columns: str | None = None
    schema: str | None = None
    method: str | None = None
    infer_schema: bool = False
    sample_rows: int = SAMPLE_ROWS
    records_per_partition: int = RECORDS_PER_PARTITION
    min_partitions: int = 1
    max_per_trigger: int | None = None
    min_per_trigger: int | None = None
    max_delay_us: int = MAX_DELAY_US
    parallelism: int | None = None
    topics_pattern: str | None = None
    batch_rows: int = BATCH_ROWS
    fail_on_data_loss: bool = True
    wire_type: str | None = None
    queue_format: Format | None = None
    key: KeySource = _NO_KEY
    keep_errors: bool = False
    given: frozenset[str] = field(default=frozenset())
    server: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def chooses(self, topic: str) -> bool:
        """Return whether a topic is read."""
        if self.topics_pattern is not None:
            return re.fullmatch(self.topics_pattern, topic) is not None
        return self.topics is None or topic in self.topics

    @staticmethod
    def of(options: Mapping[str, str], parallelism: int | None = None) -> ReadOptions:
        """
        Parse Spark's options; *parallelism* is the number of tasks that run at once.

        Raises:
            OptionsError: Options are unknown, missing or out of range; the error lists every
                problem.

        """
        problems: list[str] = []
        given = Given(options, problems.append)
        starting, ending = given.bound("starting", EARLIEST), given.bound("ending", LATEST)
        if EARLIEST in {ending.offset, *ending.by_topic.values()}:
            problems.append("endingOffsets must not be earliest: nothing would be read")
        if given.text("schema") is not None and given.flag("inferSchema", default=False):
            problems.append("give a schema or inferSchema, not both")
        if given.text("method") is not None and given.text("schema") is None:
            problems.append("`method` requires the interface: option schema=module:Name")
        for name, other in _NEEDS.items():
            if given.text(name) is not None and given.text(other) is None:
                problems.append(f"{name} has no effect without {other}")
        most = given.optional_count("maxOffsetsPerTrigger")
        fewest = given.optional_count("minOffsetsPerTrigger")
        if most is not None and fewest is not None and fewest > most:
            problems.append(
                "minOffsetsPerTrigger is larger than maxOffsetsPerTrigger:"
                f" minOffsetsPerTrigger={fewest} maxOffsetsPerTrigger={most}"
            )
        if given.text("topics") is not None and given.text("topicsPattern") is not None:
            problems.append("give topics or topicsPattern, not both")
        read = ReadOptions(
            path=given.directory(),
            topics=given.names("topics"),
            starting=starting,
            ending=ending,
            time_field=_time_field(given),
            columns=given.text("columns"),
            schema=given.text("schema"),
            method=given.text("method"),
            infer_schema=given.flag("inferSchema", default=False),
            sample_rows=given.count("sampleRows", SAMPLE_ROWS),
            records_per_partition=given.count("recordsPerPartition", RECORDS_PER_PARTITION),
            min_partitions=given.count("minPartitions", 1),
            max_per_trigger=most,
            min_per_trigger=fewest,
            max_delay_us=given.duration_us("maxTriggerDelay", MAX_DELAY_US),
            parallelism=parallelism,
            topics_pattern=given.pattern("topicsPattern"),
            batch_rows=given.count("batchRows", BATCH_ROWS, BATCH_ROWS_MAX),
            fail_on_data_loss=given.flag("failOnDataLoss", default=True),
            wire_type=given.choice("wireType", _WIRE_TYPES, None),
            queue_format=given.choice("queueFormat", _QUEUE_FORMATS, None),
            key=given.key(),
            keep_errors=given.choice("onError", {"fail": False, "column": True}, default=False),
            given=frozenset(name.lower() for name in options),
            server=given.server(),
        )
        given.unknown(_NAMES)
        refuse(problems)
        return read


def refuse(problems: list[str], of: str = "source") -> None:
    """
    Raise an error that lists all problems, if there are any.

    Raises:
        OptionsError: *problems* is not empty.

    """
    if problems:
        raise OptionsError(f"quire {of}: {'; '.join(problems)}")


def _time_field(given: Given) -> TimeField | None:
    units: dict[str, str | None] = {"auto": None, **{unit: unit for unit in UNITS_NS}}
    name, unit = given.text("timestampField"), given.choice("timestampUnit", units, None)
    return None if name is None else TimeField(name, unit)
