"""The writers of `docs/lakehouse.md`: a batch that is repeated after a kill is there once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import quire
from paths import ROOT, SUPPORT_FOLDERS
from quire.spark.sessions import java

PAGE = ROOT / "docs" / "lakehouse.md"
DEFINED = ("def run", "def to_delta", "def to_iceberg")
KILLED = """

import os

def killed(write):
    def then_die(frame, batch):
        write(frame, batch)
        if batch == 1:
            os._exit(9)  # after the commit of the table, before that of the checkpoint

    return then_die
"""


def program(folder: Path, *calls: str) -> str:
    """Return the definitions of the page, for a queue that is there, and these calls."""
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text("utf-8"))
    shown = "\n".join(block for block in blocks if any(it in block for it in DEFINED))
    # What is appended and called in the page is left out.
    shown = re.sub(r"(?m)^folder = .*$", f"folder = {str(folder)!r}", shown)
    shown = re.sub(r"(?ms)^with quire\.open.*?\n\n", "\n", shown)
    shown = re.sub(r"(?ms)^run\(.*?(?=\Z|^import|^from)", "\n", shown)
    return "\n".join([shown, KILLED, *calls])


def run(folder: Path, *calls: str) -> subprocess.CompletedProcess[str]:
    java.use()
    path = os.pathsep.join(map(str, [ROOT / "python", *SUPPORT_FOLDERS]))
    return subprocess.run(
        [sys.executable, "-c", program(folder, *calls)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def in_order(table: pa.Table) -> list[int]:
    return sorted(table["size"].to_numpy().tolist())


@pytest.mark.slow
def test_a_batch_that_is_repeated_after_a_kill_is_there_once(tmp_path: Path) -> None:
    with quire.open(tmp_path / "trades") as queue, queue.appender() as appender:
        for number in range(10):
            appender.write_map({"symbol": "EURUSD", "price": 1.1, "size": number})
    for name in ("delta", "iceberg"):
        died = run(tmp_path, f"run(killed(to_{name}), {name!r})")
        assert died.returncode == 9, died.stderr
    again = run(tmp_path, "run(to_delta, 'delta')", "run(to_iceberg, 'iceberg')")
    assert again.returncode == 0, again.stderr

    delta = DeltaTable(str(tmp_path / "delta" / "trades"))
    assert in_order(delta.to_pyarrow_table()) == [*range(10)]
    assert delta.version() == delta.transaction_version("trades") == 2

    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db")
    iceberg = catalog.load_table("market.trades")
    assert in_order(iceberg.scan().to_arrow()) == [*range(10)]
    assert len(iceberg.snapshots()) == 3
    catalog.close()
