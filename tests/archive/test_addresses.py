"""URLs where an archive, or a queue of one, belongs: nothing is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from quire.archive import archive


@pytest.mark.parametrize("form", [str, Path])
@pytest.mark.parametrize("url", ["s3://bucket/archive", "quire://host/orders"])
def test_a_url_makes_no_directory(
    url: str, form: type, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"one")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for places in ((path, form(url)), (form(url), tmp_path / "archive")):
        with pytest.raises(quire.errors.UnsupportedError, match="reaches a server"):
            archive(*places)
    assert sorted(tmp_path.rglob("*")) == before
