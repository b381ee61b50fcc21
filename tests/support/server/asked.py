"""A client of Redis whose answers are kept, to be compared with those of another server."""

from __future__ import annotations

import re
from typing import Any, cast

import redis

_ID = re.compile(rb"\d+-\d+")
Answers = list[Any]


class Asked:
    """
    A client whose answers are kept; ids are numbered in the order in which they appear.

    Redis' ids are times, and those of a queue indexes: only their order is the same.
    """

    def __init__(self, client: Any, prefix: str) -> None:  # noqa: ANN401
        self._client, self._prefix = client, prefix
        self._ids: list[bytes] = []
        self.answers: Answers = []

    def __call__(self, *words: str | int | bytes) -> Any:  # noqa: ANN401
        given = [self._own(it) for it in words]
        try:
            raw = self._client.execute_command(*given, NEVER_DECODE=True)
        except redis.ResponseError as error:
            raw = f"error {str(error).partition(' ')[0]}"
        self.answers.append((words, self._shown(raw)))
        return raw

    def _own(self, word: str | int | bytes) -> str | int | bytes:
        """Replace ``@3`` by the fourth id, and ``key:`` by the prefix of this test."""
        if not isinstance(word, str):
            return word
        word = re.sub(r"@(\d+)", lambda it: self._ids[int(it[1])].decode(), word)
        return word.replace("key:", self._prefix)

    def _shown(self, raw: Any) -> Any:  # noqa: ANN401
        if isinstance(raw, dict):
            known: dict[Any, Any] = {**raw}
            return {self._shown(key): self._shown(value) for key, value in known.items()}
        if isinstance(raw, list | tuple):
            return [self._shown(it) for it in cast("list[Any]", raw)]
        if isinstance(raw, bytes) and _ID.fullmatch(raw) and raw != b"0-0":
            if raw not in self._ids:
                self._ids.append(raw)
            return f"@{self._ids.index(raw)}"
        if isinstance(raw, bytes):
            return raw.replace(self._prefix.encode(), b"key:")
        return raw
