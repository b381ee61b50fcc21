"""Which right each command needs: that one alone is enough, and no other is."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

import quire
from quire.errors import RefusedError
from quire.server import TokenFile
from quire.server.commands.command_table import COMMANDS
from quire.server.tokens import RIGHTS, Right
from served import command, connected, serving, talk

FREE: tuple[Right, ...] = RIGHTS
NEEDED: dict[tuple[Right, ...], tuple[str, ...]] = {
    FREE: (
        *("HELLO", "PING", "ECHO a", "QUIT", "RESET", "SELECT 0", "CLIENT ID", "COMMAND COUNT"),
        *("INFO", "CLUSTER INFO", "DBSIZE", "SCAN 0", "CONFIG GET a", "QUIRE.HELLO", "QUIRE.PEERS"),
        "QUIRE.GROUP READ 1",  # of a member that this connection is not
    ),
    ("read",): (
        *("TYPE q", "EXISTS q", "XLEN q", "XRANGE q - +", "XREVRANGE q + -", "XREAD STREAMS q 0"),
        *("XINFO STREAM q", "XINFO GROUPS q", "XINFO CONSUMERS q g"),
        *("XGROUP CREATE q new $", "XGROUP CREATECONSUMER q g c"),
        *("XREADGROUP GROUP g c STREAMS q >", "XACK q g 1", "XPENDING q g", "XCLAIM q g c 0 1"),
        "XAUTOCLAIM q g c 0 0",
        *("QUIRE.CYCLES q", "QUIRE.REPLICAS q", "QUIRE.READ q FROM 0", "QUIRE.SEEK q INDEX 0"),
        *("QUIRE.TAILER LIST q", "QUIRE.TAILER OPEN q t", "QUIRE.TAILER COMMIT q t 0"),
        "QUIRE.TAILER CLOSE q t",
        *("QUIRE.GROUP LIST q", "QUIRE.GROUP STATE q g", "QUIRE.GROUP PENDING q g"),
        *("QUIRE.GROUP JOIN q g c", "QUIRE.GROUP RELEASE q g 1 1", "QUIRE.GROUP EXTEND q g 1 1"),
    ),
    ("append",): (
        *("XADD q * n 1", "QUIRE.APPEND q VALUES a", "QUIRE.WAIT q ANY", "QUIRE.SYNC q"),
        "QUIRE.SINK ABORT q writer 1",
    ),
    ("read", "append"): ("QUIRE.OPEN q", "QUIRE.OPEN q CREATE", "QUIRE.INFO q"),
    ("manage",): (
        *("XTRIM q MAXLEN ~ 5", "XDEL q 1", "XSETID q 1", "DEL q", "UNLINK q"),
        *("XGROUP SETID q g 0", "XGROUP DELCONSUMER q g c", "XGROUP DESTROY q none"),
        *("QUIRE.TAILER DELETE q t", "QUIRE.TAILER RENAME q t u"),
        *("QUIRE.GROUP RESET q g START", "QUIRE.GROUP DELETE q none"),
    ),
}


class Served:
    """A server, and a token for each right."""

    def __init__(self, port: int, tokens: TokenFile, queue: Path) -> None:
        self.port, self.queue = port, queue
        self._tokens = tokens
        self._made: dict[tuple[Right, ...], str] = {}

    def token(self, *rights: Right) -> str:
        if rights not in self._made:
            patterns: dict[Right, tuple[str, ...]] = dict.fromkeys(rights, ("*",))
            self._made[rights] = self._tokens.add("-".join(rights), patterns)
        return self._made[rights]

    def answer(self, words: str, *rights: Right) -> bytes:
        asked = command("AUTH", self.token(*rights)) + command(*words.split())
        return talk(self.port, asked).removeprefix(b"+OK\r\n")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("rights")
    tokens = TokenFile(folder / "tokens")
    tokens.add("first", {"read": ("*",)})
    with quire.open(folder / "queues" / "q") as queue:
        queue.appender().write_map({"n": 1})
        queue.group("g").reset("start")
    with serving(folder / "queues", "--tokens", tokens.path) as (port, _):
        yield Served(port, tokens, folder / "queues" / "q")


def test_every_command_is_in_the_table() -> None:
    named = {it.split()[0] for several in NEEDED.values() for it in several}
    assert named | {"AUTH"} == {it.decode() for it in COMMANDS}


@pytest.mark.parametrize(
    ("words", "needed"),
    [(words, needed) for needed, several in NEEDED.items() for words in several],
)
def test_one_right_is_enough(served: Served, words: str, needed: tuple[Right, ...]) -> None:
    admitted = [it for it in RIGHTS if not served.answer(words, it).startswith(b"-NOPERM")]
    assert admitted == [it for it in RIGHTS if it in needed]


def test_who_may_manage_alone_does(served: Served) -> None:
    with quire.open(served.queue) as queue:
        queue.group("idle").reset("start")  # the server is no member of it yet
        queue.tailer("done").close()
    for words, answer in (
        ("XTRIM q MAXLEN ~ 5", b":0\r\n"),
        ("QUIRE.TAILER DELETE q done", b":1\r\n"),
        ("QUIRE.GROUP RESET q idle END", b"+OK\r\n"),
        ("XLEN q", b"-NOPERM the token may not read this queue: name=q\r\n"),
    ):
        assert served.answer(words, "manage").startswith(answer)


@pytest.mark.parametrize(
    "words", ["XADD {} * n 1", "QUIRE.APPEND {} CREATE VALUES a", "QUIRE.OPEN {} CREATE"]
)
def test_a_new_queue_takes_two_rights(served: Served, words: str) -> None:
    asked = words.format(words.split(maxsplit=1)[0].lower().replace(".", "-"))
    for right in RIGHTS:
        assert served.answer(asked, right).startswith(b"-NOPERM")
    assert not served.answer(asked, "append", "create").startswith(b"-")


def test_a_handle_appends_to_a_new_queue_without_reading(served: Served) -> None:
    address = f"quire://127.0.0.1:{served.port}/made/here"
    with quire.open(address, token=served.token("append", "create")) as queue:
        with queue.appender() as appender:
            appender.write_map({"n": 1})
            appender.write_many([b"two", b"three"])
        with pytest.raises(RefusedError, match="NOPERM the token may not read"):
            queue.tailer().read()
    with connected(served.port, password=served.token("read")) as client:
        assert client.xlen("made/here") == 3
