"""
Consumer groups: the messages of a queue, each to one member of a group.

``queue.group("billing").consumer("c1")`` joins a group. Its state is a side file in the queue's
directory, ``billing.qgroup``, which other programs ignore: see ``docs/groups.md``.
"""

from quire.groups.states import lowest_needed, states_of

__all__ = ["lowest_needed", "states_of"]
