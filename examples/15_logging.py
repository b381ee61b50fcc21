"""Log records in a queue: structured, formatted when they are read, and found by their fields."""

import logging
from tempfile import TemporaryDirectory

import quire
import quire.logging

with TemporaryDirectory() as folder:
    handler = quire.logging.Handler(f"{folder}/logs")
    logger = logging.getLogger("orders")
    logger.addHandler(handler)
    logger.warning("order %s rejected: %s", 17, "no credit", extra={"account": "A7"})
    try:
        prices = {"GBPUSD": 1.27}
        prices["EURUSD"]
    except KeyError:
        logger.exception("no price")
    logger.removeHandler(handler)
    handler.close()

    with quire.open(f"{folder}/logs", read_only=True) as log:
        for excerpt in log.tailer():
            record = excerpt.to_message(quire.logging.Record)
            print(record.level, record.text, record.extra, record.exception)
