"""A process that writes to a Vanilla Chronicle, or claims from it: VERB PATH ARGS."""

from __future__ import annotations

import struct
import sys

import quire

RECORD = struct.Struct("<II")


def write(path: str, writer: str, count: str) -> None:
    """Write numbered records, and print each index once it is appended."""
    with quire.open(path, format="vanilla") as queue, queue.appender() as appender:
        for number in range(int(count)):
            index = appender.write_bytes(RECORD.pack(int(writer), number))
            sys.stdout.write(f"{index}\n")
            sys.stdout.flush()


def claim(path: str, owner: str) -> None:
    """Claim what there is, and print the number of each message."""
    with quire.open(path, format="vanilla", consumption="queue") as queue:
        tailer = queue.tailer()
        while (excerpt := tailer.claim(int(owner))) is not None:
            sys.stdout.write(f"{excerpt.read_int32()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        claim(*sys.argv[2:])
