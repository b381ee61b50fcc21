"""What the measurements of the two older formats are held against."""

from __future__ import annotations

from typing import NamedTuple


class Ratio(NamedTuple):
    """The least ratio of two rates, of the scenarios that have both."""

    ours: str
    other: str
    least: float


RATIOS = [
    Ratio("vanilla.write_bytes", "vanilla_java.append-one", 0.8),
    Ratio("vanilla.write_many", "vanilla_java.append-one", 1.5),
    Ratio("vanilla.read_batch", "vanilla_java.tail", 1.5),
    Ratio("quick_queue.write_bytes", "quick_queue_java.append", 0.5),
    Ratio("quick_queue.write_many", "quick_queue_java.append", 1.0),
    Ratio("quick_queue.pack", "quick_queue_java.append", 0.35),
    Ratio("quick_queue.unpack", "quick_queue_java.read", 0.2),
    Ratio("quick_queue.write_bytes@2", "quick_queue.write_bytes@1", 1.5),
    Ratio("quick_queue.write_many@2", "quick_queue.write_many@1", 1.5),
]
LEAST_RATES = [("vanilla.write_many", 96, 5e6), ("vanilla.read_batch", 96, 5e6)]
"""Key, message size, messages a second."""
GROWN = [
    (
        "vanilla.idle@1",
        "vanilla.idle@10000",
        "polling after 1 or 10,000 cycles without a message",
    ),
    ("vanilla.open@10", "vanilla.open@10000", "opening 10 or 10,000 cycles"),
    ("quick_queue.open@2", "quick_queue.open@1000", "opening 2 or 1,000 pages"),
]
"""What must not cost more in an old or long queue."""
