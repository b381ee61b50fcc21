"""A queue's standing in a replication, as sources, sinks and promotions use it."""

from __future__ import annotations

from quire._common.replication_file import NAME, Role, Standing, parsed, read, write

__all__ = ["NAME", "Role", "Standing", "parsed", "read", "write"]
