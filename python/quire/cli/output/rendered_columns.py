"""Arrow columns as the native renderer takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quire.arrow.column_types import CATEGORY, DECODER_NAMES, Type

if TYPE_CHECKING:
    from quire._native import RenderedColumn


def _kind(arrow: Type, decoder: str) -> str:
    is_zoned = pa.types.is_timestamp(arrow) and arrow.tz is not None
    return f"{decoder.removesuffix(']')}, UTC]" if is_zoned else decoder


_KINDS: Final = {
    arrow: _kind(arrow, decoder) for arrow, decoder in DECODER_NAMES.items() if arrow != CATEGORY
}


def native_column(
    name: str,
    array: Any,  # noqa: ANN401 - of pyarrow
    *,
    with_times: bool = True,
) -> RenderedColumn | None:
    """
    Return a column for the native renderer; None if it does not render values of this type.

    Args:
        name: The name of the column.
        array: The column.
        with_times: Whether points in time, which have their zone, are to be rendered.

    """
    kind: Type = array.type
    if pa.types.is_struct(kind):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        inside = [
            native_column(it, array.field(number), with_times=with_times)
            for number, it in enumerate(names)
        ]
        return _nested(name, "struct", array, inside, 1)
    if pa.types.is_list(kind):
        items = native_column(kind.value_field.name, array.values, with_times=with_times)
        return _nested(name, "list", array, [items], 2)
    if kind not in _KINDS or (pa.types.is_timestamp(kind) and not with_times):
        return None
    return name, _KINDS[kind], array.offset, array.buffers(), []


def _nested(
    name: str,
    kind: str,
    array: Any,  # noqa: ANN401 - of pyarrow
    inside: list[RenderedColumn | None],
    buffers: int,
) -> RenderedColumn | None:
    known = [it for it in inside if it is not None]
    if len(known) < len(inside):
        return None
    return name, kind, array.offset, array.buffers()[:buffers], known
