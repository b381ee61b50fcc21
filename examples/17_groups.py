"""Payments are shared among consumers, and each is booked once in a database."""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import quire

SCHEMA = """
CREATE TABLE booked (message INTEGER PRIMARY KEY);
CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER);
"""
ADD = """INSERT INTO account VALUES (:account, :amount)
ON CONFLICT (name) DO UPDATE SET balance = balance + :amount"""


def book(database: sqlite3.Connection, message: quire.GroupMessage) -> None:
    """Book a payment unless it is booked: the index is unique, in the same transaction."""
    with database:
        if database.execute("INSERT OR IGNORE INTO booked VALUES (?)", (message.index,)).rowcount:
            database.execute(ADD, message.to_dict())


with TemporaryDirectory() as folder, quire.open(Path(folder, "payments")) as queue:
    with queue.appender() as appender:
        for number in range(100):
            appender.write_map({"account": "AB"[number % 2], "amount": number})
    # Payments of one account are booked in their order.
    booking = queue.group("booking", ack_timeout_s=60.0, key="account")
    with closing(sqlite3.connect(Path(folder, "accounts.db"))) as database:
        database.executescript(SCHEMA)
        with booking.consumer("dies") as consumer:
            book(database, consumer.read_many(1)[0])  # it never gets to ack()
        with booking.consumer("c1") as first, booking.consumer("c2") as second:
            while found := first.read() or second.read():
                book(database, found)
                found.ack()
        print(database.execute("SELECT * FROM account ORDER BY name").fetchall())
    print("lag:", booking.lag)
