"""Keep accounts in memory: a Quick-Queue is their write-ahead log, a snapshot shortens recovery."""

import json
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import quire
from quire.quick_queue import QuickAppender, QuickQueue

Accounts = dict[str, Decimal]


def transfer(log: QuickAppender, accounts: Accounts, *, to: str, amount: Decimal) -> None:
    rest, received = accounts["A"] - amount, accounts[to] + amount
    if rest < 0:
        raise ValueError(f"not enough: amount={amount}")
    log.new_message().pack_string(to).pack_decimal(rest).pack_decimal(received).write_message()
    log.force()  # on the medium before memory changes
    accounts |= {"A": rest, to: received}


def recover(queue: QuickQueue, snapshot: Path) -> Accounts:
    saved = json.loads(snapshot.read_text())
    accounts = {name: Decimal(amount) for name, amount in saved["accounts"].items()}
    for excerpt in queue.tailer(start=saved["index"]):
        to = (event := excerpt.unpack()).unpack_string()
        accounts |= {"A": event.unpack_decimal(), to: event.unpack_decimal()}
    return accounts


with TemporaryDirectory() as folder, quire.open(f"{folder}/log", format="quick-queue") as queue:
    accounts, snapshot = {"A": Decimal(5), "B": Decimal(3)}, Path(folder, "snapshot.json")
    with queue.appender() as log:
        transfer(log, accounts, to="B", amount=Decimal(2))
        state = {name: str(amount) for name, amount in accounts.items()}
        snapshot.write_text(json.dumps({"index": queue.end_index, "accounts": state}))
        transfer(log, accounts, to="B", amount=Decimal("0.5"))
    print("in memory:", accounts)
    print("recovered:", recover(queue, snapshot))
