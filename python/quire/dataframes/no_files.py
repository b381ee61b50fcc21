"""A file system without files, for pyarrow: reading one is an error that says what to do."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from pyarrow.fs import FileSystemHandler, PyFileSystem

from quire.errors import UnsupportedError

_ASKED: Final = frozenset(getattr(FileSystemHandler, "__abstractmethods__", ()))


def no_files(path: str) -> PyFileSystem:
    """Return a file system that raises :class:`UnsupportedError` for whatever is done with it."""

    def refuse(*given: Any) -> NoReturn:  # noqa: ANN401, ARG001 - whatever pyarrow asks
        raise UnsupportedError(
            "pyarrow cannot read a queue's dataset here: give it dataset.scanner(), a table"
            f" (dataset.to_table()) or batches (dataset.to_batches()) path={path}"
        )

    def name_of(_handler: object) -> str:
        return "quire"

    methods: dict[str, Any] = dict.fromkeys(_ASKED, refuse)
    methods["get_type_name"] = name_of
    return PyFileSystem(type("NoFiles", (FileSystemHandler,), methods)())
