"""A range of a queue as a dataset of pyarrow: DuckDB and Polars push columns and filters to it."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyarrow.dataset import Dataset, Scanner

from quire._common.notebook_table import of_table
from quire.dataframes.scan import Scan, part_of

_READ_AHEAD: Final = 2  # batches


class QueueDataset(Dataset):
    """A range of a queue, from :meth:`quire.Queue.scan`. It holds no messages."""

    def __init__(self, scan: Scan) -> None:
        """Read nothing yet. What pyarrow makes of files is not made."""
        self._scan = scan

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
        """Return a reader of the range; columns that are not named are not decoded."""
        names = self._names(columns, filter)
        schema = part_of(self.schema, names)
        return Scanner.from_batches(
            self._scan.batches(names),
            schema=schema,
            columns=columns,
            filter=filter,
            batch_readahead=_READ_AHEAD,
            use_threads=options.get("use_threads", True),
        )

    def head(self, num_rows: int, **options: Any) -> pa.Table:  # type: ignore[override] # noqa: ANN401
        """Return the first rows; pyarrow would look for files."""
        return self.scanner(**options).head(num_rows)

    def count_rows(self, **options: Any) -> int:  # type: ignore[override] # noqa: ANN401
        """Return the number of rows."""
        return self.scanner(columns=self.schema.names[:1], **options).count_rows()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all rows as a stream, in batches."""
        reader: Any = self._scan.reader()
        capsule: object = reader.__arrow_c_stream__(requested_schema)
        return capsule

    def __reduce__(self) -> tuple[type[QueueDataset], tuple[Scan]]:
        """Pickle what is read; the queue is opened again."""
        return QueueDataset, (self._scan,)

    def __repr__(self) -> str:
        """Return the queue and the columns."""
        return f"QueueDataset({self._scan.queue.path}, columns={', '.join(self.schema.names)})"

    def _repr_html_(self) -> str:
        return of_table(self.head(20))

    def _names(self, columns: list[str] | dict[str, Any] | None, condition: Any) -> list[str]:  # noqa: ANN401
        """Return the columns to read: those asked for, and those that the filter needs."""
        names: list[str] = self.schema.names
        if not isinstance(columns, list):
            return names
        for name in [name for name in names if name not in columns]:
            others = [it for it in names if it != name]
            if condition is None or self._binds(others, condition):
                names = others
        return names

    def _binds(self, names: list[str], condition: Any) -> bool:  # noqa: ANN401
        """Whether a filter needs no other columns than these; pyarrow does not list them."""
        narrow = part_of(self.schema, names)
        try:
            Scanner.from_batches(iter(()), schema=narrow, filter=condition)
        except pa.ArrowInvalid:
            return False
        return True
