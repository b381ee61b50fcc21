"""What others take to encode and to decode the same object, by itself: no queue, no file."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeAlias, get_type_hints

from bench.task import DISTINCT, Missing, Outcome, Stopwatch, Task, checksum
from bench.trades import Trade, trades

_Encode: TypeAlias = Callable[[Any], bytes]
_Decode: TypeAlias = Callable[[bytes], Any]
_Prepared: TypeAlias = tuple[list[Any], _Encode, _Decode]

NAME = "Codecs"
NAMES = {
    f"{codec}.{what}": f"{text}, {what}d alone"
    for what in ("encode", "decode")
    for codec, text in {
        "msgspec": "msgspec (msgpack)",
        "msgspec_struct": "msgspec (msgpack) of a Struct",
        "orjson": "orjson",
        "pickle": "pickle",
    }.items()
}


def version() -> str:
    """Return the versions."""
    try:
        import msgspec
        import orjson
    except ImportError as error:
        raise Missing(str(error)) from error
    return f"msgspec {msgspec.__version__}, orjson {orjson.__version__}, pickle"


def run(task: Task) -> Outcome:
    """Encode or decode the distinct objects in turn."""
    codec, what = task.operation.split(".")
    objects, encode, decode = _CODECS[codec]()
    encoded = [encode(one) for one in objects]
    assert [decode(one) for one in encoded] == objects
    call, pool = (encode, objects) if what == "encode" else (decode, encoded)

    def loop(rounds: int) -> None:
        for _ in range(rounds):
            for one in pool:
                call(one)

    loop(task.warm_up // DISTINCT)
    with Stopwatch() as watch:
        loop(task.count // DISTINCT)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


def _msgspec(cls: type, objects: list[Any]) -> _Prepared:
    from msgspec import msgpack

    return objects, msgpack.Encoder().encode, msgpack.Decoder(cls).decode


def _msgspec_struct() -> _Prepared:
    import msgspec

    cls = msgspec.defstruct("Trade", list(get_type_hints(Trade).items()))
    return _msgspec(cls, [cls(**asdict(one)) for one in trades()])


def _orjson() -> _Prepared:
    import orjson

    loads = orjson.loads
    return trades(), orjson.dumps, lambda data: Trade(**loads(data))


def _pickle() -> _Prepared:
    dumps, protocol = pickle.dumps, pickle.HIGHEST_PROTOCOL
    return trades(), lambda one: dumps(one, protocol), pickle.loads


_CODECS: dict[str, Callable[[], _Prepared]] = {
    "msgspec": lambda: _msgspec(Trade, trades()),
    "msgspec_struct": _msgspec_struct,
    "orjson": _orjson,
    "pickle": _pickle,
}
