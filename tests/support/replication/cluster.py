"""Nodes of a queue on this machine, and the real etcd that decides among them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import pytest

import quire
from authority import Authority
from cli_runs import COMMAND, ENVIRONMENT
from ports import free_port
from quire.errors import (
    AppendLockedError,
    LeaseExpiredError,
    RegisterError,
    ReplicationError,
    WaitTimeoutError,
)
from quire.replication import standing
from quire.replication.etcd import Etcd
from quire.replication.register import Leader, View, view_of
from quire.replication.tls import Tls
from replicas import last_index, wait_until

LEASE_S = 2
LIMIT_S = 60.0


class RunningEtcd:
    """An etcd of its own, in an empty directory; with certificates it asks clients for theirs."""

    def __init__(self, folder: Path, tls: Tls | None = None) -> None:
        self._folder, self._port, self._peers = folder, free_port(), free_port()
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._port}"
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        peers = f"http://127.0.0.1:{self._peers}"
        with (self._folder / "etcd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *("etcd", "--data-dir", str(self._folder / "data"), "--unsafe-no-fsync"),
                    *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
                    *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
                    *("--initial-cluster", f"default={peers}"),
                    *self._tls_arguments(),
                ],
                stdout=log,
                stderr=log,
            )
        wait_until(self.answers, limit_s=LIMIT_S)

    def _tls_arguments(self) -> list[str]:
        tls = self._tls
        if tls is None:
            return []
        files = ("--cert-file", tls.certificate), ("--key-file", tls.key)
        trusted = ("--trusted-ca-file", tls.authority)
        return ["--client-cert-auth", *(str(it) for pair in (*files, trusted) for it in pair)]

    def answers(self) -> bool:
        try:
            self.client().read("/")
        except RegisterError:
            return False
        return True

    def client(self) -> Etcd:
        return Etcd(self.url, timeout_s=5, tls=self._tls)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def running_etcd(folder: Path, tls: Tls | None = None) -> Generator[RunningEtcd]:
    if shutil.which("etcd") is None:
        pytest.skip("etcd is not installed (Debian: etcd-server)")
    pytest.importorskip("etcd3gw")
    folder.mkdir()
    etcd = RunningEtcd(folder, tls)
    try:
        etcd.start()
        yield etcd
    finally:
        etcd.stop()


class Cluster:
    """
    Nodes of one queue, which the first of them has in the beginning.

    Args:
        etcd: What decides.
        folder: An empty directory.
        names: The nodes'.
        authority: Who signs their certificates; None: they have none.
        options: More options of all of them.

    """

    def __init__(
        self,
        etcd: RunningEtcd,
        folder: Path,
        names: str,
        authority: Authority | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self._options = options
        self.etcd, self.folder, self.names = etcd, folder, tuple(names)
        self.tls = {} if authority is None else {name: authority.signed(name) for name in names}
        self._ports = {name: free_port() for name in names}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        with quire.open(self.path(names[0]), roll_cycle="FAST_DAILY", block_bytes=1 << 16) as queue:
            queue.appender().write_bytes(b"the first")
        self._client = etcd.client()

    def path(self, name: str) -> Path:
        return self.folder / name

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self._ports[name]}"

    def arguments(self, name: str) -> list[str]:
        return [
            *("replicate", "node", str(self.path(name)), "--listen", self.address(name)),
            *("--etcd", self.etcd.url, "--name", name, "--lease", str(LEASE_S)),
            *self._tls_arguments(name),
            *self._options,
        ]

    def _tls_arguments(self, name: str) -> list[str]:
        tls = self.tls.get(name)
        if tls is None:
            return []
        named = ("--certificate", tls.certificate), ("--key", tls.key)
        return [str(it) for pair in (*named, ("--authority", tls.authority)) for it in pair]

    def start(self, name: str) -> None:
        with (
            (self.folder / f"{name}.out").open("ab") as out,
            (self.folder / f"{name}.err").open("ab") as err,
        ):
            self._running[name] = subprocess.Popen(
                [*COMMAND, *self.arguments(name)], stdout=out, stderr=err, env=ENVIRONMENT
            )

    def begin(self) -> None:
        """Start all nodes, and return when they are in sync."""
        for name in self.names:
            self.start(name)
        self.wait_in_sync()

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal; a process that is to stop has stopped when this returns."""
        self._running[name].send_signal(number)
        if number == signal.SIGSTOP:
            with suppress(ChildProcessError):  # it has ended
                os.waitid(os.P_PID, self._running[name].pid, os.WSTOPPED)

    def kill(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].wait()

    def ended(self, name: str) -> int:
        return self._running[name].wait(LIMIT_S)

    def errors(self, name: str) -> str:
        return (self.folder / f"{name}.err").read_text()

    def output(self, name: str) -> list[str]:
        return (self.folder / f"{name}.out").read_text().splitlines()

    @property
    def view(self) -> View:
        found = standing.read(self.path(self.names[0]))
        identity = "none yet" if found is None else found.identity
        return view_of(self._client.read("/quire/"), identity)

    def leader(self) -> Leader | None:
        """Return the source, once everybody may append there."""
        try:
            found = self.view.leader
        except RegisterError:
            return None
        if found is None:
            return None
        line = f"source epoch={found.epoch} listening {found.address}"
        return found if line in self.output(found.name) else None

    def wait_for_leader(self, *, after: int = 0) -> Leader:
        """Return the source of a later epoch, once there is one."""
        wait_until(lambda: (it := self.leader()) is not None and it.epoch > after, limit_s=LIMIT_S)
        found = self.leader()
        assert found is not None
        return found

    def wait_in_sync(self) -> None:
        wait_until(
            lambda: self.leader() is not None and self.view.in_sync == frozenset(self.names),
            limit_s=LIMIT_S,
        )

    def append(self, name: str, data: bytes) -> int:
        with quire.open(self.path(name), create=False) as queue:
            return queue.appender().write_bytes(data)

    def writer(self) -> Writer:
        return Writer(self)

    def wait_for_copies(self, index: int, names: set[str]) -> None:
        wait_until(lambda: all(last_index(self.path(it)) >= index for it in names), limit_s=LIMIT_S)

    def payloads(self, name: str) -> list[tuple[int, bytes]]:
        with quire.open(self.path(name), read_only=True) as queue, queue.tailer() as tailer:
            return [(it.index, it.data) for it in tailer]

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


class Writer:
    """
    Appends with ``wait="all"`` to whichever node is the source, in a thread of its own.

    Attributes:
        acknowledged: What all of the in-sync set had when the append returned.
        refused: How many appends were refused, or not acknowledged in time.

    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._ends = cluster, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: dict[int, bytes] = {}
        self.refused = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def wait_for_more(self) -> None:
        """Return once one more append was acknowledged that began after the call."""
        before = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) > before + 1, limit_s=LIMIT_S)

    def _run(self) -> None:
        number = 0
        while not self._ends.is_set():
            number += 1
            leader = self._cluster.leader()
            if leader is None or not self._append(leader.name, b"acknowledged %d" % number):
                self.refused += 1
                self._ends.wait(0.01)

    def _append(self, name: str, data: bytes) -> bool:
        try:
            path = self._cluster.path(name)
            with quire.open(path, create=False, timeout_s=1) as queue, queue.appender() as appender:
                self.acknowledged[appender.write_bytes(data, wait="all")] = data
        except (AppendLockedError, LeaseExpiredError, ReplicationError, WaitTimeoutError):
            return False
        return True


@contextmanager
def cluster_of(
    names: str, folder: Path, authority: Authority | None = None, options: Sequence[str] = ()
) -> Generator[Cluster]:
    tls = None if authority is None else authority.signed("etcd")
    with running_etcd(folder / "etcd", tls) as etcd:
        cluster = Cluster(etcd, folder, names, authority, options)
        try:
            yield cluster
        finally:
            cluster.close()
