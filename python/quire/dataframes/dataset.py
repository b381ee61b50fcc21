"""A range of a queue as a pyarrow dataset, to which DuckDB and Polars push columns and filters."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import pyarrow as pa
from pyarrow.dataset import (
    Dataset,
    Expression,
    FileSystemDataset,
    InMemoryDataset,
    IpcFileFormat,
    Scanner,
)

from quire._common import arguments
from quire._common.notebook_table import of_facts, of_table
from quire.dataframes.no_files import no_files
from quire.dataframes.scan import Scan, part_of
from quire.dataframes.until_exit import UntilExit
from quire.errors import QuireError, UnsupportedError

_READ_AHEAD: Final = 2  # batches


class QueueDataset(FileSystemDataset):
    """
    A range of a queue, from :meth:`quire.Queue.scan`. It does not hold the messages.

    Functions of pyarrow that do not call :meth:`scanner` find a file that cannot be opened: they
    raise an error that says what to do, instead of crashing or returning an empty table.
    """

    def __init__(self, scan: Scan, condition: Any = None) -> None:  # noqa: ANN401 - of pyarrow
        """Create the dataset without reading."""
        self._scan = scan
        self._condition = condition
        path, files, form = str(scan.queue.path), no_files(scan.queue.path), IpcFileFormat()
        nowhere: Any = form.make_fragment(path, filesystem=files)
        super().__init__([nowhere], scan.columns, form, files)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._scan.columns

    def scanner(  # type: ignore[override]
        self,
        columns: list[str] | dict[str, Any] | None = None,
        filter: Any = None,  # noqa: A002, ANN401 - of pyarrow
        **options: Any,  # noqa: ANN401 - of pyarrow
    ) -> Scanner:
        """Return a reader of the range; only the named columns are decoded."""
        condition = self._and(filter)
        names = self._names(columns, condition)
        schema = part_of(self.schema, names)
        return Scanner.from_batches(
            UntilExit(self._scan.batches(names)),
            schema=schema,
            columns=columns,
            filter=condition,
            batch_readahead=_READ_AHEAD,
            use_threads=options.get("use_threads", True),
        )

    def head(self, num_rows: int, **options: Any) -> pa.Table:  # type: ignore[override] # noqa: ANN401
        """Return the first rows; pyarrow's own method would look for files."""
        return self.scanner(**options).head(num_rows)

    def count_rows(self, **options: Any) -> int:  # type: ignore[override] # noqa: ANN401
        """Return the number of rows."""
        return self.scanner(columns=self.schema.names[:1], **options).count_rows()

    def filter(self, expression: Any) -> QueueDataset:  # noqa: ANN401 - of pyarrow
        """
        Return the rows for which an expression is true, as a dataset.

        Raises:
            TypeError: *expression* is not an expression of pyarrow.

        """
        if not isinstance(expression, Expression):
            raise arguments.refusal("expression", "an expression of pyarrow", expression)
        return QueueDataset(self._scan, self._and(expression))

    def sort_by(self, sorting: Any, **options: Any) -> InMemoryDataset:  # noqa: ANN401
        """Return the sorted rows, as a dataset in memory."""
        return self.in_memory().sort_by(sorting, **options)

    def join(self, right_dataset: Dataset, *keys: Any, **options: Any) -> InMemoryDataset:  # noqa: ANN401
        """Join another dataset; both are loaded into memory."""
        return self.in_memory().join(_in_memory(right_dataset), *keys, **options)

    def join_asof(self, right_dataset: Dataset, *keys: Any, **options: Any) -> InMemoryDataset:  # noqa: ANN401
        """Join the nearest rows of another dataset; both are loaded into memory."""
        return self.in_memory().join_asof(_in_memory(right_dataset), *keys, **options)

    def get_fragments(self, filter: Any = None) -> NoReturn:  # noqa: A002, ANN401, ARG002
        """
        Refuse, as there are no files to read one by one.

        Raises:
            UnsupportedError: Always.

        """
        raise UnsupportedError(
            f"a queue has no fragments: path={self._path} (use scanner() or to_batches())"
        )

    def replace_schema(self, schema: Any) -> NoReturn:  # noqa: ANN401, ARG002
        """
        Refuse; pyarrow calls this to make a dataset part of another one.

        Raises:
            UnsupportedError: Always.

        """
        raise UnsupportedError(
            "a queue's dataset cannot be part of another dataset or get another schema:"
            f" path={self._path} (pass the schema to queue.scan, or use dataset.to_table())"
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all rows as a stream, in batches."""
        is_whole = self._condition is None
        reader: Any = self._scan.reader() if is_whole else self.scanner().to_reader()
        capsule: object = reader.__arrow_c_stream__(requested_schema)
        return capsule

    def __reduce__(self) -> tuple[type[QueueDataset], tuple[Scan, Any]]:
        """Pickle the range; the queue is opened again."""
        return QueueDataset, (self._scan, self._condition)

    def __repr__(self) -> str:
        """Return the queue and the columns."""
        return f"QueueDataset({self._path}, columns={', '.join(self.schema.names)})"

    def _repr_html_(self) -> str:
        try:
            return of_table(self.head(20))
        except (QuireError, ValueError, OSError) as error:
            return of_facts(repr(self), [("error", error)])

    @property
    def _path(self) -> str:
        return str(self._scan.queue.path)

    def in_memory(self) -> InMemoryDataset:
        """Return all rows as a dataset in memory."""
        made: Any = InMemoryDataset
        found: InMemoryDataset = made(self.scanner().to_table())
        return found

    def _and(self, condition: Any) -> Any:  # noqa: ANN401 - of pyarrow
        if self._condition is None or condition is None:
            return self._condition if condition is None else condition
        return self._condition & condition

    def _names(self, columns: list[str] | dict[str, Any] | None, condition: Any) -> list[str]:  # noqa: ANN401
        """Return the columns to read: the requested ones, and those that the filter needs."""
        names: list[str] = self.schema.names
        if not isinstance(columns, list):
            return names
        for name in [name for name in names if name not in columns]:
            others = [it for it in names if it != name]
            if condition is None or self._binds(others, condition):
                names = others
        return names or self.schema.names[:1]  # a batch without a column has no rows

    def _binds(self, names: list[str], condition: Any) -> bool:  # noqa: ANN401
        """Whether these columns suffice for a filter; pyarrow does not list those it needs."""
        narrow = part_of(self.schema, names)
        try:
            Scanner.from_batches(iter(()), schema=narrow, filter=condition)
        except pa.ArrowInvalid:
            return False
        return True


def _in_memory(dataset: Dataset) -> Dataset:
    return dataset.in_memory() if isinstance(dataset, QueueDataset) else dataset
