"""The names of columns, each defined once."""

from __future__ import annotations

from typing import Final

# Columns of batches, unless the schema names them differently.
BATCH_INDEX: Final = "index"
PAYLOAD: Final = "payload"
VALUE: Final = "value"
METHOD: Final = "method"
HISTORY: Final = "history"

# Columns of every message, in archives and on Spark.
INDEX: Final = "_index"
CYCLE: Final = "_cycle"
SEQUENCE: Final = "_sequence"
TOPIC: Final = "_topic"
SUBTOPIC: Final = "_subtopic"
TIMESTAMP: Final = "_timestamp"
SPARK_HISTORY: Final = "_history"

# The reason why a malformed record is null, with ``errors="column"``.
ERROR: Final = "_error"
