"""The optional pyarrow, asked for where it is needed first."""

from __future__ import annotations

from importlib import import_module


def need_arrow() -> None:
    """
    Check that pyarrow is there.

    Raises:
        ModuleNotFoundError: It is not; the message says what to install.

    """
    try:
        import_module("pyarrow")
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        text = "batches and schemas need pyarrow: pip install 'quire[arrow]'"
        raise ModuleNotFoundError(text, name="pyarrow") from None
