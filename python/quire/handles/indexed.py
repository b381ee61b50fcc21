"""
Indexed Chronicles: the files ``NAME.index`` and ``NAME.data`` of Java Chronicle 3.

Quire reads them, even while Java writes. Their single writer uses no lock, so Quire cannot append.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from quire import _native
from quire._native import VanillaExcerpt
from quire.errors import UnsupportedError
from quire.formats.indexed import WHY_NO_GROUPS
from quire.formats.missing import Handle, reasons, refuse_options
from quire.handles.base import Queue
from quire.handles.raw import RawTailer

_FORMAT = "Indexed Chronicle"
_READ_ONLY = "it is only read: its one writer knows no lock that would keep a second one out"
_NO_WIRE = "messages are raw bytes, not BinaryWire: read, read_bytes"
_NO_ROLLING = "there are no cycles: the two files only grow"
_NO_TABLE = "nothing is stored about readers: keep tailer.index and use move_to_index"
_REASONS = reasons(
    {
        "topics topic read_map read_message read_messages follow_messages "
        "afollow_messages aread_map aread_message "
        "read_batches method_reader reading_document history after_last_written dump wire_type "
        "source_id": _NO_WIRE,
        "roll_cycle epoch_ms cycles current_cycle current_file file_for_cycle end_of_cycle "
        "cycle_at cycle_start_ms roll_time_zone "
        "move_to_time block_bytes refresh": _NO_ROLLING,
        "table_value table_entries named_tailers delete_tailer rename_tailer "
        "lock_holder commit name": _NO_TABLE,
        "striding": "an index names every message: there is nothing to stride over",
        "move_to": "move_to_index goes to any place",
        "metrics": "counters are kept for Chronicle Queues only",
        "group groups": WHY_NO_GROUPS,
        "ring": "there is no buffer_mode: nothing is appended",
        "claim write_lock pretoucher last_index_synced": _READ_ONLY,
        "last_acknowledged_index replicas": _READ_ONLY,
        "state": "it is Chronicle Queue's: see index and last_read_index",
        "release_resources": "a tailer has two files open: close it",
    }
)


class IndexedTailer(_native.IndexedTailer, RawTailer[VanillaExcerpt]):
    """
    Reads messages of an Indexed Chronicle, from :meth:`IndexedQueue.tailer`.

        with quire.open("trades.index") as queue, queue.tailer() as tailer:
            for excerpt in tailer:
                print(excerpt.index, excerpt.read_int32())
    """

    _format, _missing = _FORMAT, _REASONS


class IndexedQueue(_native.IndexedQueue, Queue, Handle):
    """
    An open Indexed Chronicle, from ``quire.open`` with the path of its files without suffix.

    It is only read, and pickles by path.

        with quire.open("trades", format="indexed") as queue:
            print(queue.entry_count, queue.tailer().read_batch())
    """

    _format, _missing = _FORMAT, _REASONS
    if not TYPE_CHECKING:  # what every other format has: `_missing` says why it is not here
        group = groups = property()

    def appender(self, **named: object) -> NoReturn:
        """
        Raise the reason why there is no appender.

        Raises:
            UnsupportedError: Indexed Chronicles are only read.

        """
        refuse_options(self, "appender", named, ("limit", "wait"), _READ_ONLY)
        raise UnsupportedError(f"not supported in an {_FORMAT}: appender ({_READ_ONLY})")

    def tailer(self, name: str | None = None, **named: object) -> IndexedTailer:
        """
        Return a new tailer, at the first message.

        Args:
            name: Not supported: nothing is stored about readers.
            named: Not supported: ``on_missing`` and ``shared`` are for named tailers.

        Raises:
            UnsupportedError: A name, or an option of named tailers, was given: this format has no
                named tailers.

        """
        refuse_options(self, "tailer", named, ("on_missing", "shared"), _NO_TABLE)
        if name is not None:
            raise UnsupportedError(f"not supported in an {_FORMAT}: named tailers ({_NO_TABLE})")
        return IndexedTailer(self)
