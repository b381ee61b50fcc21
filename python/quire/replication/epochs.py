"""What a queue knows of its replicas when an epoch begins."""

from __future__ import annotations

from quire._native import ReplicaStates


def begin_epoch(states: ReplicaStates, epoch: int) -> None:
    """
    Note the number of an epoch; what replicas acknowledged in an earlier one counts no more.

    Another source may have reigned since then, and the replicas, or this queue, may have lost what
    they had: a message that gets the same index now is another one. Members stay members.
    """
    if states.epoch != epoch:
        for name, address, *_ in states.replicas():
            slot = states.slot_of(name, address)
            states.note(slot, sent=None, acknowledged=None, time_ns=0)
    states.set_epoch(epoch)
