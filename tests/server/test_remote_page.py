"""The code in docs/remote.md runs, against a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from flown import days, flying
from paths import ROOT

BLOCKS = re.compile(r"(?ms)^```python\n(.*?)^```$")


@pytest.mark.check
def test_the_blocks_of_the_page_run_in_order(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "remote.md").read_text("utf-8")
    root = tmp_path / "queues"
    days(root / "prices" / "eur")
    with flying(root, listen=True) as ((address, flight), _):
        program = "".join(BLOCKS.findall(page))
        program = program.replace("127.0.0.1:7000", address).replace("127.0.0.1:7001", flight)
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    with quire.open(root / "orders", read_only=True) as orders:
        assert f"{orders.first_index} {{'symbol': 'EURUSD', 'price': 1.1}}" in ran.stdout
