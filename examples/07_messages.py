"""Messages as objects of a class: by their fields, or behind the name of their class."""

from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import quire


@quire.message(alias="Order")
@dataclass
class Order:
    """What somebody wants to buy, or, below zero, to sell."""

    symbol: str
    quantity: quire.types.int32
    limit: float | None = None
    tags: list[str] = field(default_factory=list[str])


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        quire.open(f"{folder}/orders") as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        appender.write_message(Order("EURUSD", 100, 1.25, ["fast"]))
        print("as an Order:", tailer.read_message(Order))

        appender.write_message(Order("GBPUSD", 7), typed=True)
        print("by its own name:", tailer.read_message())

        appender.write_map({"quantity": "3", "venue": "XLON", "symbol": "USDJPY"})
        print("from other fields in another order:", tailer.read_message(Order))


if __name__ == "__main__":
    main()
