"""Who is the source, by a model of etcd: one at a time, of the in-sync set, each in a new epoch."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cluster import running_etcd
from etcd_model import EtcdClient, EtcdModel, S
from quire.errors import EtcdAwayError, NameTakenError, RegisterError
from quire.replication.election import Candidate, Standpoint
from quire.replication.register import Compare, Entry, Put, Register, queues_in, view_of

QUEUE = "0" * 32
LEASE_S = 10


class Member:
    """A node without a queue."""

    def __init__(self, model: EtcdModel, name: str) -> None:
        self.client = EtcdClient(model)
        self.skew_ns = 0
        self.candidate = Candidate(
            self.client,
            name=name,
            address=f"{name}:1",
            lease_s=LEASE_S,
            now_ns=lambda: model.now_ns + self.skew_ns,
        )
        self.candidate.queue = QUEUE
        self.name, self._model = name, model
        self.is_first = name == "a"
        self.standpoint = Standpoint(None, is_own=False, lease_end_ns=0)

    def step(self, *, may_lead: bool = True) -> Standpoint:
        self.standpoint = self.candidate.step(may_lead=may_lead, is_first=self.is_first)
        return self.standpoint

    @property
    def writes(self) -> bool:
        """Whether everybody may append at this node now."""
        now = self._model.now_ns + self.skew_ns
        return self.standpoint.is_own and now < self.standpoint.lease_end_ns

    @property
    def epoch(self) -> int:
        leader = self.standpoint.leader
        return 0 if leader is None else leader.epoch


@pytest.fixture
def model() -> EtcdModel:
    return EtcdModel(now_ns=1000 * S)


@pytest.fixture
def members(model: EtcdModel) -> list[Member]:
    """Three nodes, the first of which is the source, and all in sync."""
    found = [Member(model, name) for name in "abc"]
    for each in found:
        each.step()
    found[0].step()
    assert found[0].candidate.change_in_sync(add=frozenset("bc"), remove=frozenset())
    for each in found:
        each.step()
    return found


def test_the_first_source_is_the_node_with_the_queue(model: EtcdModel) -> None:
    b, a = Member(model, "b"), Member(model, "a")
    assert b.step().leader is None
    a.step()
    assert (a.writes, a.epoch) == (True, 1)
    assert b.step().leader == a.standpoint.leader
    assert b.candidate.queues() == [QUEUE]


def test_another_takes_over_when_the_lease_is_over(model: EtcdModel, members: list[Member]) -> None:
    a, b, c = members
    model.now_ns += LEASE_S * S - 1
    assert a.writes
    assert not b.step().is_own
    model.now_ns += 1
    assert not a.writes
    b.step()
    assert (b.writes, b.epoch) == (True, 2)
    assert not c.step().is_own
    assert b.candidate.view is not None
    assert b.candidate.view.in_sync == {"b", "c"}  # a may have more than was acknowledged
    assert not a.step().is_own


def test_only_a_member_of_the_set_is_promoted(model: EtcdModel, members: list[Member]) -> None:
    a, b, c = members
    assert a.candidate.change_in_sync(add=frozenset(), remove=frozenset("b"))
    model.now_ns += LEASE_S * S
    assert not b.step().is_own
    assert c.step().is_own


def test_an_older_state_of_a_directory_is_not_counted_on(
    model: EtcdModel, members: list[Member]
) -> None:
    b = members[1]
    marks = iter(("first", "second"))
    assert b.candidate.mark(lambda _: next(marks))
    assert b.candidate.mark(lambda _: next(marks))
    model.now_ns += LEASE_S * S
    again = Member(model, "b").candidate
    assert not again.counts_on({"first"})
    assert again.counts_on({"first", "second"})
    assert Member(model, "d").candidate.counts_on({"first"})  # it is not in the set
    assert not again.mark(lambda _: "third")  # before the node has its name


def test_a_mark_of_which_no_answer_came(members: list[Member]) -> None:
    b, seen = members[1], list[str | None]()

    def replaced(present: str | None) -> str:
        seen.append(present)
        b.client.loses_answers = len(seen) == 2
        return f"mark {len(seen)}"

    assert b.candidate.mark(replaced)
    with pytest.raises(EtcdAwayError):
        b.candidate.mark(replaced)
    b.client.loses_answers = False
    assert b.candidate.mark(replaced)
    assert seen == [None, "mark 1", "mark 2"]


def test_a_node_that_leaves_the_set_has_no_mark(members: list[Member]) -> None:
    b = members[1]
    assert b.candidate.mark(lambda _: "first")
    assert b.candidate.withdraw()
    assert b.candidate.counts_on(())
    assert b.candidate.view is not None
    assert not b.candidate.view.marks
    assert b.candidate.mark(lambda _: "second")
    assert b.candidate.withdraw()  # of no set, it forgets the mark, too
    assert b.candidate.counts_on(())


def test_a_source_that_comes_back_in_time_begins_a_new_epoch(
    model: EtcdModel, members: list[Member]
) -> None:
    again = Member(model, "a")
    with pytest.raises(NameTakenError):
        again.step()
    assert not again.candidate.is_name_lost()
    model.now_ns += LEASE_S * S
    assert again.step().is_own
    assert again.epoch == 2
    assert again.candidate.view is not None
    assert again.candidate.view.in_sync == {"a", "b", "c"}
    assert not members[0].writes


def test_a_name_that_stays_taken(model: EtcdModel, members: list[Member]) -> None:
    again = Member(model, "b")
    for _ in range(LEASE_S + 3):
        model.now_ns += S
        members[1].step()
        with pytest.raises(NameTakenError, match="name=b address=b:1"):
            again.step()
    assert again.candidate.is_name_lost()


def test_the_set_is_the_sources_alone(model: EtcdModel, members: list[Member]) -> None:
    a, b, _ = members
    assert not b.candidate.change_in_sync(add=frozenset("x"), remove=frozenset())
    model.now_ns += LEASE_S * S
    b.step()
    # a has not heard of it yet
    assert not a.candidate.change_in_sync(add=frozenset("x"), remove=frozenset())
    assert b.candidate.change_in_sync(add=frozenset("x"), remove=frozenset())


def test_etcd_away(model: EtcdModel, members: list[Member]) -> None:
    a, b, _ = members
    for each in members:
        each.client.is_reachable = False
    model.now_ns += LEASE_S * S // 2
    for each in members:
        with pytest.raises(EtcdAwayError):
            each.step()
    assert a.writes
    model.now_ns += LEASE_S * S // 2
    assert not a.writes
    assert not b.writes


def test_a_successor_is_the_only_one(members: list[Member]) -> None:
    a, b, c = members
    a.candidate.resign("c")
    assert b.step().leader is None
    assert a.step().leader is None
    assert c.step().is_own
    assert c.epoch == 2
    assert c.candidate.view is not None
    assert c.candidate.view.successor is None


def test_a_successor_that_does_not_come_is_forgotten(
    model: EtcdModel, members: list[Member]
) -> None:
    a, b, _ = members
    a.candidate.resign("c")
    model.now_ns += LEASE_S * S
    assert b.step().is_own


def test_one_that_leaves_is_followed_at_once(members: list[Member]) -> None:
    members[0].candidate.leave()
    assert members[1].step().is_own


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("leader", it) for it in ("", "[]", "{}", "[" * 5000, '{"name":1}')],
        *[("epoch", it) for it in ('{"epoch":-1,"name":"a"}', '{"epoch":true,"name":"a"}', "7")],
        *[("in-sync", it) for it in ("{}", "[1]", "null", "a")],
    ],
)
def test_what_no_node_has_written(key: str, value: str) -> None:
    entries = {f"/quire/{QUEUE}/{key}": Entry(value, 1, 1, 0)}
    with pytest.raises(RegisterError, match="that no node has written"):
        view_of(entries, QUEUE)
    assert queues_in({"/quire/": Entry("", 1, 1, 0), "/quire/x/y/leader": Entry("", 1, 1, 0)}) == []


@pytest.mark.parametrize("seed", range(60))
def test_any_sequence_of_failures(seed: int) -> None:
    """No two write at once, epochs grow, and a new source was in the set before."""
    chance = random.Random(seed)  # noqa: S311
    model = EtcdModel(now_ns=1000 * S)
    members = {name: Member(model, name) for name in "abc"}
    reigns = dict[int, str]()
    in_sync = set[str]()
    for _ in range(400):
        model.now_ns += chance.choice((0, S // 5, S, 3 * S, 11 * S))
        member = chance.choice(list(members.values()))
        match chance.randrange(12):
            case 0:
                member.client.is_reachable = not member.client.is_reachable
            case 1:
                member.client.loses_answers = not member.client.loses_answers
            case 2:  # killed, and started again
                members[member.name] = Member(model, member.name)
            case 3 if member.writes:
                others = frozenset(chance.sample("abc", 2)) - {member.name}
                _quietly(lambda: member.candidate.change_in_sync(add=others, remove=frozenset()))  # noqa: B023
            case _:
                _quietly(member.step)
        writers = [it for it in members.values() if it.writes]
        assert len(writers) <= 1, [(it.name, it.epoch) for it in writers]
        for each in writers:
            is_new = each.epoch not in reigns
            assert reigns.setdefault(each.epoch, each.name) == each.name
            assert not is_new or not in_sync or each.name in in_sync
            assert not is_new or each.epoch == max(reigns)
        model.expire()
        in_sync = set(view_of(model.keys, QUEUE).in_sync)
    assert reigns


def _quietly(action: Callable[[], object]) -> None:
    with suppress(RegisterError):
        action()


@pytest.mark.check
def test_the_model_answers_as_the_real_etcd(tmp_path: Path) -> None:
    model = EtcdModel()
    with running_etcd(tmp_path / "etcd") as etcd:
        assert _conversation(EtcdClient(model)) == _conversation(etcd.client())


def _conversation(register: Register) -> list[object]:
    """Return what an etcd answers, without its numbers."""
    said = list[object]()
    lease = register.grant(60)
    said.append(register.keep_alive(lease))
    said.append(register.read("/a"))
    said.append(register.commit([Compare("/a/1", "CREATE", 0)], [Put("/a/1", "x", lease)]))
    said.append(register.commit([Compare("/a/1", "CREATE", 0)], [Put("/a/1", "y", lease)]))
    entry = register.read("/a/")["/a/1"]
    said.append((entry.value, entry.created == entry.modified, entry.lease == lease))
    changed = [Put("/a/1", "z", lease), Put("/a/2", "é\n"), Put("/b", "b")]
    said.append(register.commit([Compare("/a/1", "MOD", entry.modified)], changed))
    said.append(register.commit([Compare("/a/1", "MOD", entry.modified)], [Put("/b", None)]))
    later = register.read("/a/")
    said.append({key: (it.value, it.lease == lease) for key, it in later.items()})
    said.append(later["/a/1"].created == entry.created and later["/a/1"].modified > entry.modified)
    said.append(register.commit([Compare("/none", "MOD", 0)], [Put("/b", None), Put("/c", None)]))
    register.revoke(lease)
    said.append(sorted(register.read("/")))
    said.append(register.keep_alive(lease))
    return said
