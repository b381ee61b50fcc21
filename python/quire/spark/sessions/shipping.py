"""
Sending this copy of the package to a cluster whose Python lacks it.

Python cannot import a native module from a zip, so ``--py-files`` is no option. Instead, Spark
unpacks an archive in the directory of each executor, and the archive's name is put on the workers'
path. Workers that plan queries on the driver's machine find the package through a link.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

_PACKAGES: Final = ("quire", "pyspark_quire")
_NAME: Final = "quire-shipped"
_ARCHIVES: Final = "spark.archives"
_PATH: Final = "spark.executorEnv.PYTHONPATH"
_CACHES: Final = "__pycache__"


def settings(others: Mapping[str, str]) -> dict[str, str]:
    """
    Return *others* with the settings that send the package; call it before Spark's Java starts.

    Args:
        others: Spark's settings; their archives and the workers' path are kept.

    """
    folder = _folder()
    _put_first(str(folder / "links"))
    return {
        **others,
        _ARCHIVES: ",".join(filter(None, (others.get(_ARCHIVES), f"{folder}/quire.zip#{_NAME}"))),
        _PATH: os.pathsep.join(filter(None, (_NAME, others.get(_PATH)))),
    }


@cache
def _folder() -> Path:
    """Create the archive and the links, which are removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="quire-shipped-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    links = folder / "links"
    links.mkdir()
    with ZipFile(folder / "quire.zip", "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for package in _packages():
            (links / package.name).symlink_to(package, target_is_directory=True)
            for file in sorted(package.rglob("*")):
                if file.is_file() and _CACHES not in file.parts:
                    archive.write(file, file.relative_to(package.parent))
    return folder


def _packages() -> Iterator[Path]:
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent


def _put_first(folder: str) -> None:
    """Put a folder first on the Python path of processes started later."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, *path)))
