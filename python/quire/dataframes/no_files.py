"""A pyarrow file system without files: any use raises an error that says what to do."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from pyarrow.fs import FileSystemHandler, PyFileSystem

from quire.errors import UnsupportedError

_ASKED: Final = frozenset(getattr(FileSystemHandler, "__abstractmethods__", ()))


def no_files(path: str) -> PyFileSystem:
    """Return a file system that raises :class:`UnsupportedError` on every call."""

    def refuse(*given: Any) -> NoReturn:  # noqa: ANN401, ARG001 - whatever pyarrow asks
        raise UnsupportedError(
            f"this function of pyarrow cannot read a queue's dataset: path={path}"
            " (pass dataset.scanner(), dataset.to_table() or dataset.to_batches())"
        )

    def name_of(_handler: object) -> str:
        return "quire"

    methods: dict[str, Any] = dict.fromkeys(_ASKED, refuse)
    methods["get_type_name"] = name_of
    return PyFileSystem(type("NoFiles", (FileSystemHandler,), methods)())
