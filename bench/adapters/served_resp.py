"""Quire's server, by clients of Redis Streams: both ends of a latency, as those of Redis."""

from __future__ import annotations

from bench.adapters import replicated_redis, served

NAME = "Quire, `XADD` and `XREAD BLOCK`"
version, services = served.version, served.services
run = replicated_redis.run
