"""A model of etcd in memory: revisions, transactions, and leases that expire by a test's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quire.errors import EtcdAwayError
from quire.replication.register import Compare, Entry, Put

S = 1_000_000_000


@dataclass
class EtcdModel:
    """
    The keys, and the leases they are bound to.

    A lease ends exactly when it is over: the real etcd removes its keys up to half a second later.
    """

    now_ns: int = 0
    keys: dict[str, Entry] = field(default_factory=dict[str, Entry])
    ends: dict[int, int] = field(default_factory=dict[int, int])
    ttls: dict[int, int] = field(default_factory=dict[int, int])
    revision: int = 1

    def expire(self) -> None:
        for lease in [it for it, end in self.ends.items() if end <= self.now_ns]:
            self.drop(lease)

    def drop(self, lease: int) -> None:
        self.ends.pop(lease, None)
        self.keys = {key: it for key, it in self.keys.items() if it.lease != lease}


class EtcdClient:
    """
    One node's connection to the model.

    Attributes:
        is_reachable: Whether requests arrive.
        loses_answers: Whether what was asked is done, but no answer comes.

    """

    def __init__(self, model: EtcdModel) -> None:
        self._model = model
        self.is_reachable = True
        self.loses_answers = False

    def _arrive(self) -> EtcdModel:
        if not self.is_reachable:
            raise EtcdAwayError("etcd does not answer: the model is away")
        self._model.expire()
        return self._model

    def _answer(self) -> None:
        if self.loses_answers:
            raise EtcdAwayError("etcd does not answer: its answer was lost")

    def read(self, prefix: str) -> Mapping[str, Entry]:
        model = self._arrive()
        self._answer()
        return {key: it for key, it in model.keys.items() if key.startswith(prefix)}

    def commit(self, compares: Sequence[Compare], puts: Sequence[Put]) -> bool:
        model = self._arrive()
        holds = all(_revision(model.keys.get(it.key), it.what) == it.revision for it in compares)
        assert len({it.key for it in puts}) == len(puts), "etcd refuses two changes of one key"
        if holds:
            model.revision += 1
            for put in puts:
                self._put(model, put)
        self._answer()
        return holds

    @staticmethod
    def _put(model: EtcdModel, put: Put) -> None:
        if put.value is None:
            model.keys.pop(put.key, None)
            return
        assert not put.lease or put.lease in model.ends, "etcd knows no such lease"
        before = model.keys.get(put.key)
        created = model.revision if before is None else before.created
        model.keys[put.key] = Entry(put.value, created, model.revision, put.lease)

    def grant(self, ttl_s: int) -> int:
        model = self._arrive()
        model.revision += 1
        lease = 1000 + model.revision
        model.ends[lease], model.ttls[lease] = model.now_ns + ttl_s * S, ttl_s
        self._answer()
        return lease

    def keep_alive(self, lease: int) -> int:
        model = self._arrive()
        if lease in model.ends:
            model.ends[lease] = model.now_ns + model.ttls[lease] * S
        self._answer()
        return model.ttls[lease] if lease in model.ends else 0

    def revoke(self, lease: int) -> None:
        model = self._arrive()
        model.drop(lease)
        self._answer()


def _revision(entry: Entry | None, what: str) -> int:
    if entry is None:
        return 0
    return entry.created if what == "CREATE" else entry.modified
