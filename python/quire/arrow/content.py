"""What a schema is made of: the columns of messages, or the methods that messages call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from quire.arrow.plan import Method

Shape = Literal["fields", "value", "calls"]


class Content(NamedTuple):
    """What a schema is made of."""

    shape: Shape
    parts: pa.Schema | tuple[Method, ...]
    history: bool = False
    index_name: str | None = "index"
    types: tuple[str, ...] = ()
    """The types that messages may name, where they name one; any if there are none."""
