"""Delivered messages: columns that are split into payloads."""

from __future__ import annotations

from array import array

import pytest

import quire
from quire._native import split_payloads


def test_columns_are_split_into_payloads() -> None:
    assert split_payloads(array("i", [0, 1, 1, 3]), b"abc") == [b"a", b"", b"bc"]
    assert split_payloads(memoryview(array("i", [2, 3])), memoryview(b"abc")) == [b"c"]
    assert split_payloads(array("i", [0]), b"") == split_payloads(b"", b"") == []


@pytest.mark.parametrize("places", [(0, 4), (2, 1), (-1, 2)])
def test_offsets_outside_the_data_are_refused(places: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="offsets are outside its data: row=0"):
        split_payloads(array("i", places), b"abc")


def test_a_batch_has_the_payloads_of_new_claims_and_of_what_is_left_of_others(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    written = [b"%d" % number for number in range(100)]
    appender.write_many(written)
    group = queue.group("billing")
    with group.consumer("first") as consumer:
        batch = consumer.read_many(70)
        assert batch.payloads() == [it.data for it in batch] == written[:70]
        consumer.ack_many(list(batch)[::2])
    found: list[bytes] = []
    with group.consumer("second") as consumer:
        while batch := consumer.read_many(50):
            assert batch.payloads() == [it.data for it in batch]
            found += batch.payloads()
            consumer.ack_many(batch)
    assert sorted(found, key=int) == written[1:70:2] + written[70:]
