"""`quire dump` of a queue of version 4."""

from __future__ import annotations

import shutil
from pathlib import Path

from cli_runs import Cli
from paths import GOLDEN


def test_the_listing_of_version_4_is_left_out(cli: Cli, path: Path) -> None:
    shutil.copytree(GOLDEN / "v4", path)
    before = cli.ok("dump", path).out
    (path / "directory-listing.cq4t").write_bytes(b"\x94\0\0\x40of version 4")
    assert cli.ok("dump", path).out == before
