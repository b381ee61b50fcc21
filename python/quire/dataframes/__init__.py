"""
Queues as data frames, and in notebooks.

``scan`` reads a range in batches, ``dataset`` is a range that DuckDB and Polars push columns down
to, and ``framed`` adds both to every queue.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - of IPython
    """Have ``%load_ext quire.dataframes`` show batches and tables of pyarrow as HTML."""
    import pyarrow as pa

    from quire._common.notebook_table import of_table

    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (pa.RecordBatch, pa.Table):
        formatter.for_type(kind, of_table)
