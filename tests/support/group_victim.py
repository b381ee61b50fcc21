"""
A consumer that works until it is killed, for tests/attack/test_group_storm.py.

Each line of its log is one write, which outlives it: `D index deliveries time` after a message was
delivered, `B index time` before it is acknowledged, `A index` after that.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from typing import TypeAlias

import quire

Key: TypeAlias = str | None

KEYED = "keyed"
KEYS = 7


def group_of(queue: quire.JournalQueue, mode: str) -> quire.Group:
    """The group of a storm. Only dead members lose messages: no time is ever over."""
    return queue.group("storm", ack_timeout_s=math.inf, key="key" if mode == KEYED else None)


def work(consumer: quire.Consumer, log: int, rng: random.Random) -> None:
    """Read a few messages, refuse some of them and acknowledge the others."""
    batch = consumer.read_many(rng.choice([1, 1, 3, 40, 100]))
    for message in batch:
        line = f"D {message.index} {message.delivery_count} {time.monotonic_ns()}\n"
        os.write(log, line.encode())
    for message in batch:
        if rng.random() < 0.1:
            message.nack()
            continue
        os.write(log, f"B {message.index} {time.monotonic_ns()}\n".encode())
        if message.ack():
            os.write(log, f"A {message.index}\n".encode())
    if not batch:
        time.sleep(0.001)  # until there is more, or the end


def main(path: str, log_path: str, seed: str, mode: str) -> None:
    """Work for ever."""
    rng = random.Random(int(seed))  # noqa: S311 - another course for each
    log = os.open(log_path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    with quire.open(path) as queue, group_of(queue, mode).consumer() as consumer:
        while True:
            work(consumer, log, rng)


if __name__ == "__main__":
    main(*sys.argv[1:])
