"""
Consumer groups: each message of a queue goes to one member of a group.

``queue.group("billing").consumer("c1")`` joins a group. Its state is a side file in the queue's
directory, ``billing.qgroup``, which other programs ignore: see ``docs/groups.md``.
"""

from quire.groups.states import PendingMessage, lowest_needed, states_of
from quire.groups.undelivered import DeadLetter, dead_letters

__all__ = ["DeadLetter", "PendingMessage", "dead_letters", "lowest_needed", "states_of"]
