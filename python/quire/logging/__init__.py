"""
Log records as messages of a queue: a handler for the standard library's ``logging``.

>>> import logging
>>> handler = quire.logging.Handler("logs")
>>> logger = logging.getLogger("orders")
>>> logger.addHandler(handler)
>>> logger.warning("order %s rejected: %s", 17, "no credit")
>>> with quire.open("logs", read_only=True) as log:
...     record = log.tailer().read_message(quire.logging.Record)
>>> record.level, record.message, record.args, record.text
('WARNING', 'order %s rejected: %s', [17, 'no credit'], 'order 17 rejected: no credit')
>>> logger.removeHandler(handler)
>>> handler.close()
"""

from quire.logging.handler import Handler
from quire.logging.log_record import Raised, Record, schema

__all__ = ["Handler", "Raised", "Record", "schema"]
