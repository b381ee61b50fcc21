"""Data frames and notebook tables of a queue of any format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from quire._common.optional_arrow import need_arrow
from quire.errors import QuireError

if TYPE_CHECKING:
    from datetime import date
    from typing import TypedDict

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyarrow.dataset import Dataset

    from quire.arrow.schema import SchemaLike
    from quire.dataframes.scan import Scan

    class Options(TypedDict, total=False):
        """The options of `DataFrameMethods.scan`."""

        start: int | float | date | str | None
        end: int | float | date | str | None
        time_field: str | None
        errors: Literal["raise", "column"]


class DataFrameMethods:
    """The methods of a queue for data frames."""

    if TYPE_CHECKING:

        @property
        def path(self) -> str: ...

    def scan(
        self,
        schema: SchemaLike | None = None,
        *,
        start: float | date | str | None = None,
        end: float | date | str | None = None,
        time_field: str | None = None,
        errors: Literal["raise", "column"] = "raise",
    ) -> Dataset:
        """
        Return a range of the messages as a pyarrow dataset, without reading it yet.

        DuckDB finds it by the name of its variable, and Polars takes it with
        ``polars.scan_pyarrow_dataset``. Both request only the columns that a query needs; the
        others are not decoded. Messages are read in batches, so that memory use is constant. A
        dataset can be read any number of times while the queue is open.

        Args:
            schema: The form of the messages, as in :meth:`Tailer.read_batch`. None: the columns
                ``index`` and ``payload``, the bytes of a message.
            start: The index of the first message, or a time; None: the first message.
            end: The index or time after the last message; None: the end of the queue at the start
                of each reading.
            time_field: The field that contains a message's time. Without it, a time must be the
                start of a cycle.
            errors: How to treat a message that does not fit the schema: ``raise`` an error, or
                return a null row with the reason in a further ``column``, ``_error``.

        Raises:
            WireError: While the dataset is read, a message does not fit the requested columns.
            ValueError: While the dataset is read, a time is within a cycle and *time_field* is
                missing.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> trades = queue.scan({"symbol": "utf8", "price": "float64"})
            >>> trades.to_table(columns=["price"]).to_pylist()
            [{'price': 1.1}]

        """
        need_arrow()
        from quire.dataframes.dataset import QueueDataset

        scan = self._scan(schema, start=start, end=end, time_field=time_field, errors=errors)
        return QueueDataset(scan)

    def to_arrow(self, schema: SchemaLike | None = None, **options: Unpack[Options]) -> pa.Table:
        """
        Return a range of the messages as a pyarrow table.

        Args:
            schema: The form of the messages; None: ``index`` and ``payload``.
            options: The options of :meth:`scan`: ``start``, ``end``, ``time_field``, ``errors``.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> queue.to_arrow({"symbol": "utf8"}).column("symbol").to_pylist()
            ['EURUSD']

        """
        need_arrow()
        return self._scan(schema, **options).reader().read_all()

    def to_pandas(
        self, schema: SchemaLike | None = None, **options: Unpack[Options]
    ) -> pd.DataFrame:
        """
        Return a range of the messages as a pandas data frame; see :meth:`to_arrow`.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> queue.to_pandas({"price": "float64"})["price"].sum()
            np.float64(1.1)

        """
        frame: pd.DataFrame = self.to_arrow(schema, **options).to_pandas()
        return frame

    def to_polars(
        self, schema: SchemaLike | None = None, **options: Unpack[Options]
    ) -> pl.DataFrame:
        """
        Return a range of the messages as a Polars data frame; see :meth:`to_arrow`.

        For a lazy frame, pass the result of :meth:`scan` to ``polars.scan_pyarrow_dataset``.

        Raises:
            ModuleNotFoundError: Polars is not installed.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> queue.to_polars({"price": "float64"})["price"].sum()
            1.1

        """
        import polars as pl

        found = pl.from_arrow(self.to_arrow(schema, **options))
        return found if isinstance(found, pl.DataFrame) else found.to_frame()

    def __arrow_c_schema__(self) -> object:
        """Return the columns ``index`` and ``payload``, for the Arrow PyCapsule interface."""
        need_arrow()
        columns: Any = self._scan(None).columns
        capsule: object = columns.__arrow_c_schema__()
        return capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the messages as a stream of ``index`` and ``payload``, in batches."""
        need_arrow()
        reader: Any = self._scan(None).reader()
        capsule: object = reader.__arrow_c_stream__(requested_schema)
        return capsule

    def _repr_html_(self) -> str:
        from quire._common.notebook_table import of_facts

        facts: list[tuple[str, object]] = []
        try:
            for name in ("first_index", "last_index", "entry_count"):
                value: int | None = getattr(self, name)
                is_index = value is not None and name != "entry_count"
                facts.append((name, f"{value:#x}" if is_index else value))
        except (QuireError, OSError) as error:
            facts.append(("error", error))
        return of_facts(repr(self), facts)

    def _scan(self, schema: SchemaLike | None, **options: Any) -> Scan:  # noqa: ANN401
        from quire.dataframes.scan import Scan

        return Scan.of(self, schema, **options)
