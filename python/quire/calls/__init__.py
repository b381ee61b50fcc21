"""
Method calls and messages: interfaces, message classes, method writers and method readers.

Message classes are made by :func:`quire.message`.
"""

from typing import TYPE_CHECKING

from quire._common.later import imported_later

if TYPE_CHECKING:
    from quire.calls.interfaces import method_id
    from quire.calls.printing import print_all

__all__ = ["method_id", "print_all"]

__getattr__ = imported_later(
    __name__, {"method_id": "quire.calls.interfaces", "print_all": "quire.calls.printing"}
)
