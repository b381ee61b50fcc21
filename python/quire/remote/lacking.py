"""Features that remote handles lack, and why."""

from __future__ import annotations

from typing import Final

from quire.formats.missing import reasons

FORMAT: Final = "remote queue"
FILES: Final = "the files are on the server's machine: open the queue there"
REASONS: Final = reasons(
    {
        "current_file file_for_cycle dump end_of_cycle release_resources refresh table_value "
        "table_entries lock_holder write_lock pretoucher metrics normalise_eofs "
        "last_index_synced": FILES,
        "ring": "remote queues have no ring: write_many sends many messages at once",
        "topics topic": "sub-topics can be selected only on the queue's machine",
        "striding state": "they need the queue's files: move_to_index goes anywhere",
        "cycle_at cycle_start_ms current_cycle": "see cycles and move_to_time",
    }
)
