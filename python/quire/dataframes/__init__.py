"""
Queues as data frames, and in notebooks.

``scan`` reads a range in batches, ``dataset`` makes a range a dataset to which DuckDB and Polars
push down columns and filters, and ``framed`` adds both to every queue.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - of IPython
    """Show pyarrow's batches and tables as HTML after ``%load_ext quire.dataframes``."""
    import pyarrow as pa

    from quire._common.notebook_table import of_table

    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (pa.RecordBatch, pa.Table):
        formatter.for_type(kind, of_table)
