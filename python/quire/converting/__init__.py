"""
Converting a queue into another format, with a map of its indexes.

This package has :func:`quire.convert` and :func:`quire.salvage`, and their results.
"""

from typing import TYPE_CHECKING

from quire._common.later import imported_later

if TYPE_CHECKING:
    from quire.converting.conversion import Converted
    from quire.converting.mapping import IndexMap

__all__ = ["Converted", "IndexMap"]

__getattr__ = imported_later(
    __name__, {"Converted": "quire.converting.conversion", "IndexMap": "quire.converting.mapping"}
)
