"""Named tailers of processes of other containers, whose pids live out here, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quire
from containers import CONTAINER, need_namespaces

HOLDER = """
import os, sys
import quire
queue = quire.open(sys.argv[1])
tailer = queue.tailer("risk")
print(os.getpid(), bytes(tailer.read_bytes()).decode(), flush=True)
sys.stdin.read()
tailer.commit()
os._exit(1)
"""


@pytest.mark.parametrize("kind", ["chronicle", "vanilla"])
def test_a_name_is_used_by_one_tailer_of_all_containers(tmp_path: Path, kind: str) -> None:
    need_namespaces()
    opened: Any = quire.open
    command = [*CONTAINER, sys.executable, "-c", HOLDER, str(tmp_path / "q")]
    with opened(tmp_path / "q", format=kind) as queue:
        queue.appender().write_many([b"one", b"two"])
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as contained:
            assert contained.stdout is not None
            assert contained.stdout.readline() == b"1 one\n"
            with pytest.raises(quire.errors.TailerInUseError):
                queue.tailer("risk")
            contained.communicate()
        with queue.tailer("risk") as tailer:
            assert tailer.read_bytes() == b"two"
