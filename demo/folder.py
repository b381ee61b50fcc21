"""The directory of a run: recreated by each run, and deleted only if a run made it."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MARKER: Final = ".quire-demo"


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """The files of a run."""

    path: Path

    @property
    def queue(self) -> Path:
        """The journal."""
        return self.path / "flights"

    @property
    def first_node(self) -> Path:
        """The queue of the node that dies, of a replicated run; the journal is the second's."""
        return self.path / "flights-first-node"

    @property
    def node_log(self) -> Path:
        """What the commands of a replicated or served run wrote to stderr."""
        return self.path / "nodes.log"

    @property
    def served(self) -> Path:
        """What the server of a served run serves; the journal is a queue below it."""
        return self.path / "served"

    @property
    def tokens(self) -> Path:
        """The file of the server's tokens, of a served run."""
        return self.path / "tokens"

    @property
    def pruned(self) -> Path:
        """The copy of the journal on which retention ran."""
        return self.path / "flights-pruned"

    @property
    def page(self) -> Path:
        """The page of plots."""
        return self.path / "flights.html"

    @property
    def spark_log(self) -> Path:
        """What Spark and its workers wrote to stderr."""
        return self.path / "spark.log"

    def files(self) -> dict[str, Path]:
        """Return what the run made, by what it is."""
        made = {
            "journal": self.queue,
            "served": self.served,
            "dead node": self.first_node,
            "node log": self.node_log,
            "pruned": self.pruned,
            "page": self.page,
            "Spark log": self.spark_log,
        }
        return {name: path for name, path in made.items() if path.exists()}


def make_anew(path: Path, *, keep: bool = False) -> DemoFolder:
    """
    Make an empty directory at *path*; that of a former run is deleted, or moved aside to *keep* it.

    Raises:
        FileExistsError: Something that is not a folder of the demo has the name; nothing was
            changed.

    """
    path = path.absolute()
    if path.is_symlink() or (path.exists() and not _is_former(path)):
        raise FileExistsError(f"not the directory of a former demo, left alone: path={path}")
    if path.exists():
        _clear(path, keep=keep)
    path.mkdir(mode=0o700, parents=True)
    (path / MARKER).write_text("Made by a demo, which deletes this directory.\n", "utf-8")
    return DemoFolder(path)


def _is_former(path: Path) -> bool:
    return path.is_dir() and ((path / MARKER).is_file() or not any(path.iterdir()))


def _clear(path: Path, *, keep: bool) -> None:
    if keep:
        path.rename(path.with_name(f"{path.name}-{time.strftime('%Y%m%d-%H%M%S')}"))
    else:
        shutil.rmtree(path)
