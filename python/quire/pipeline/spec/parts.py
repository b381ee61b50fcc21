"""
The keys of a pipeline file, their defaults and the values they accept.

`PipelineFile` is a whole file, and its JSON schema is the file's; `Pipeline` is what runs. Paths
are made absolute while a file is validated: the context is the file's `Document`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictStr,
    Tag,
    ValidationInfo,
    field_validator,
)

from quire._common.units import duration_us
from quire.pipeline.spec.schedule import Schedule
from quire.pipeline.spec.value_types import (
    FUNCTION,
    Duration,
    Location,
    Name,
    Names,
    OptionalKey,
    Options,
    Text,
    When,
)
from quire.pipeline.spec.yaml_lines import Document

Action = Literal["quarantine", "drop", "fail", "warn"]

# The action for a row that breaks several rules is the first of these.
ACTIONS: Final[tuple[Action, ...]] = ("fail", "quarantine", "drop", "warn")

MALFORMED: Final = "malformed"
LATE: Final = "late"
DUPLICATE: Final = "duplicate"
RESERVED: Final = (MALFORMED, LATE, DUPLICATE)

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"reserved name: reserved={', '.join(RESERVED)}")
    return name


def _expectation(value: object) -> object:
    if isinstance(value, str):
        return {"check": value}
    if not isinstance(value, Mapping | Expectation):
        raise ValueError(f"found={value!r:.60} expected: text or a mapping")  # noqa: TRY004
    return cast("object", value)


def _concise(schema: dict[str, Any]) -> None:
    """Simplify a JSON schema: no titles, and no null, which an optional key does not accept."""
    for key in schema["properties"].values():
        key.pop("title", None)
        if key.get("default", ...) is None:
            del key["default"]
            forms = [it for it in key.pop("anyOf") if it != {"type": "null"}]
            key.update({"anyOf": forms} if len(forms) > 1 else forms[0])


class Part(BaseModel):
    """
    A mapping in a pipeline file.

    `hints` says for keys that other forms of the part have why this one does not.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, json_schema_extra=_concise
    )
    hints: ClassVar[Mapping[str, str]] = {}

    _name: str = PrivateAttr(default="")
    _line: int = PrivateAttr(default=1)

    @property
    def name(self) -> str:
        """Its key in the file; empty for sinks, which have none."""
        return self._name

    @property
    def line(self) -> int:
        """Its line in the file."""
        return self._line

    def locate(self, name: str, line: int) -> None:
        """Set the name and line that reports and errors give."""
        self._name, self._line = name, line


@dataclass(frozen=True, slots=True)
class Rule:
    """An expectation with its name: a SQL condition that must be true, not null, of each row."""

    name: str
    condition: str
    action: Action


class Expectation(Part):
    """A condition and the action for rows that break it."""

    check: Text
    """A SQL condition; null counts as broken."""
    action: Action = "quarantine"


class Watermark(Part):
    """Rows whose time is more than the delay before the latest of the rows before them are late."""

    column: Text
    """The column with the time of a row."""
    delay: Duration
    by: OptionalKey[Names] = None
    """Each value of these columns has its own watermark; `_topic` by default if it is a column."""
    action: Action = "quarantine"

    @property
    def delay_us(self) -> int:
        """The delay in microseconds."""
        return duration_us(self.delay)


class Deduplicate(Part):
    """Rows after the first one with the same keys are duplicates."""

    by: Names
    within: OptionalKey[Duration] = None
    """How far apart in time rows with the same keys can be duplicates; no limit by default."""
    action: Action = "quarantine"

    @property
    def within_us(self) -> int | None:
        """The time within which rows are duplicates, in microseconds."""
        return None if self.within is None else duration_us(self.within)


class Window(Part):
    """Rows wait until the watermark has passed the end of their window."""

    length: Duration


Expectations: TypeAlias = dict[
    Annotated[Text, AfterValidator(_not_reserved)],
    Annotated[
        Expectation, BeforeValidator(_expectation, json_schema_input_type=Text | Expectation)
    ],
]


class Step(Part):
    """The rules that the rows of a step have to satisfy."""

    kind: ClassVar[str] = "rules"

    order: OptionalKey[Names] = None
    """The columns that give the order of rows; for queues `_topic` and `_index`."""
    expect: OptionalKey[Annotated[Expectations, Field(min_length=1)]] = None
    """Conditions by the name of their rule."""
    watermark: OptionalKey[Watermark] = None
    deduplicate: OptionalKey[Deduplicate] = None
    window: OptionalKey[Window] = None

    @field_validator("deduplicate", "window")
    @classmethod
    def _time_has_a_watermark(cls, part: Any, info: ValidationInfo) -> Any:  # noqa: ANN401
        needs = isinstance(part, Window) or (isinstance(part, Deduplicate) and part.within)
        if needs and info.data.get("watermark", "invalid") is None:
            key = "" if isinstance(part, Window) else "within "
            raise ValueError(f"{key}needs a watermark in the same step")
        return part

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the sources and steps that the step reads, each once."""
        return ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Its expectations, in the file's order."""
        found = (self.expect or {}).items()
        return tuple(Rule(name, it.check, it.action) for name, it in found)

    @property
    def window_us(self) -> int | None:
        """The length of its window in microseconds."""
        return None if self.window is None else duration_us(self.window.length)

    @property
    def is_checked(self) -> bool:
        """Whether rows may be held back, or counted."""
        return bool(self.expect or self.watermark or self.deduplicate)


class SqlStep(Step):
    """A step in SQL, with the names of its inputs in braces."""

    kind: ClassVar[str] = "sql"
    hints: ClassVar[Mapping[str, str]] = {
        "from": "not with sql, which names its inputs in braces: select * from {trades}",
        "python": "a step has sql or python, not both",
    }

    sql: Text

    @field_validator("sql")
    @classmethod
    def _reads_something(cls, sql: str) -> str:
        if not _names_in_braces(sql):
            raise ValueError("has no input: name a source or step in braces")
        return sql

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names in braces, each once."""
        return _names_in_braces(self.sql)


class PythonStep(Step):
    """A step that calls a Python function with DataFrames."""

    kind: ClassVar[str] = "python"

    from_: Names = Field(alias="from")
    python: Annotated[StrictStr, Field(pattern=FUNCTION)]
    """`module:function`, or `file.py:function` relative to the pipeline file."""

    @field_validator("python")
    @classmethod
    def _is_importable(cls, where: str, info: ValidationInfo) -> str:
        module = where.rpartition(":")[0]
        if module.endswith(".py"):
            document: Document | None = info.context
            path = (document.path.parent if document else Path()) / module
            if not path.is_file():
                raise ValueError(f"no such file: path={path}")
        elif not _MODULE.fullmatch(module):
            raise ValueError(f"found={where!r} expected: module:function or file.py:function")
        return where

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names under `from`."""
        return self.from_


class RulesStep(Step):
    """A step without a transform."""

    from_: Names = Field(alias="from")

    @field_validator("from_")
    @classmethod
    def _reads_one(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(names) > 1:
            raise ValueError("several inputs need sql or python")
        return names

    @property
    def inputs(self) -> tuple[str, ...]:
        """The name under `from`."""
        return self.from_


def _names_in_braces(sql: str) -> tuple[str, ...]:
    try:
        found = [name for _, name, _, _ in Formatter().parse(sql) if name is not None]
    except ValueError as error:
        raise ValueError(f"braces: {error}") from None
    return tuple(dict.fromkeys(found))


def _step_kind(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return None
    return next((f"<{kind}>" for kind in ("sql", "python") if kind in value), "<rules>")


AnyStep: TypeAlias = Annotated[
    Annotated[SqlStep, Tag("<sql>")]
    | Annotated[PythonStep, Tag("<python>")]
    | Annotated[RulesStep, Tag("<rules>")],
    Discriminator(_step_kind, "form", "expected: a mapping"),
]


class _Source(Part):
    options: Options = {}
    """The options of the format."""
    ddl: OptionalKey[Text] = Field(default=None, alias="schema")
    """The columns in Spark's DDL notation."""

    @property
    def malformed_action(self) -> Action | None:
        """The action for malformed messages; None if reading fails by itself."""
        return None

    @property
    def spark_options(self) -> dict[str, str]:
        """The options for Spark's reader."""
        return self.options

    def checks(self) -> Step:
        """Return the rules of its rows as those of a step."""
        action = self.malformed_action
        rule = Expectation(check="_error is null", action=action or "quarantine")
        step = Step.model_construct(expect=None if action is None else {MALFORMED: rule})
        step.locate(self.name, self.line)
        return step


class QueueSource(_Source):
    """A queue, or a directory of queues."""

    hints: ClassVar[Mapping[str, str]] = {"table": "not for format quire"}

    format: Literal["quire"]
    path: Location
    stream: StrictBool = True
    """Whether each batch reads only new messages, or all of them."""
    malformed: OptionalKey[Action] = None
    """What happens to malformed messages."""

    @property
    def malformed_action(self) -> Action | None:
        """The action for malformed messages; None if reading fails by itself."""
        keeps_errors = any(
            name.lower() == "onerror" and value == "column" for name, value in self.options.items()
        )
        return self.malformed or ("quarantine" if keeps_errors else None)

    @property
    def spark_options(self) -> dict[str, str]:
        """The options for Spark's reader, which keeps malformed rows if there is an action."""
        if self.malformed_action is None:
            return self.options
        name = next((it for it in self.options if it.lower() == "onerror"), "onError")
        return {**self.options, name: "column"}


class FileSource(_Source):
    """Files."""

    hints: ClassVar[Mapping[str, str]] = {
        "malformed": "only for format quire",
        "table": "only for format table",
    }

    format: Literal["parquet", "csv", "json"]
    path: Location
    stream: StrictBool = False
    """Whether each batch reads the new files, or all of them."""


class TableSource(_Source):
    """A table that the session's catalog knows; each batch reads all of it."""

    hints: ClassVar[Mapping[str, str]] = {
        "malformed": "only for format quire",
        "path": "not for format table",
    }

    format: Literal["table"]
    table: Text
    stream: Literal[False] = False

    @property
    def path(self) -> str:
        """The name of the table."""
        return self.table


Source: TypeAlias = Annotated[QueueSource | FileSource | TableSource, Field(discriminator="format")]


class _Sink(Part):
    step: Name = Field(alias="from")
    """The step, or source, whose rows are written."""
    order_by: OptionalKey[Names] = None
    """The columns that each batch is sorted by."""
    options: Options = {}
    """The options of the format."""


class _PathSink(_Sink):
    path: Location

    @property
    def destination(self) -> str:
        """What reports and errors call it."""
        return self.path


class FolderSink(_PathSink):
    """A folder of Parquet files, or a Delta table."""

    hints: ClassVar[Mapping[str, str]] = {"table": "only for format table"}

    format: Literal["parquet", "delta"]
    partition_by: Names = ()
    """The columns that become folders."""


class QueueSink(_PathSink):
    """A queue."""

    hints: ClassVar[Mapping[str, str]] = {
        "partition_by": "a queue has no partitions",
        "table": "only for format table",
    }

    format: Literal["quire"]


class TableSink(_Sink):
    """A table of Parquet files that the session's catalog knows."""

    format: Literal["table"]
    table: Text
    path: OptionalKey[Location] = None
    """The folder of its files; one in the warehouse by default."""
    partition_by: Names = ()
    """The columns that become folders."""

    @property
    def destination(self) -> str:
        """What reports and errors call it."""
        return self.table


Sink: TypeAlias = Annotated[FolderSink | QueueSink | TableSink, Field(discriminator="format")]


class Quarantine(Part):
    """Where rows in quarantine are written."""

    format: Literal["parquet", "quire"] = "parquet"
    path: Location
    options: Options = {}


class PipelineFile(Part):
    """A pipeline for `quire pipeline run`."""

    pipeline: Name
    """The name of the pipeline."""
    schedule: When = Schedule("once")
    """`once`, `available-now`, or `every 30s`."""
    mode: Literal["incremental", "full"] = "incremental"
    state: Text = "state"
    """The folder for checkpoints and the state of steps."""
    settings: Options = {}
    """Spark settings for the session."""
    sources: Annotated[dict[Name, Source], Field(min_length=1)]
    steps: dict[Name, AnyStep] = {}
    sinks: Annotated[tuple[Sink, ...], Field(min_length=1)]
    quarantine: OptionalKey[Quarantine] = None

    @property
    def is_full(self) -> bool:
        """Whether everything is read, and what was written before is replaced."""
        return self.mode == "full"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline to run; its steps are in an order in which they can be computed."""

    name: str
    file: Path
    state: Path
    schedule: Schedule
    is_full: bool
    settings: Mapping[str, str]
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    quarantine: Sink

    def uses(self, name: str) -> int:
        """Return how many steps and sinks read the source or step *name*."""
        reading = sum(step.inputs.count(name) for step in self.steps)
        return reading + sum(sink.step == name for sink in self.sinks)

    @property
    def has_quarantine(self) -> bool:
        """Whether any rule sends rows to quarantine."""
        steps = [*self.steps, *(source.checks() for source in self.sources)]
        rules = [rule for step in steps for rule in step.rules]
        rules_of_time = [it for step in steps for it in (step.watermark, step.deduplicate)]
        return any(it.action == "quarantine" for it in (*rules, *rules_of_time) if it is not None)
