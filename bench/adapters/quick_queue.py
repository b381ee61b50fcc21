"""Quire on a Quick-Queue."""

from __future__ import annotations

from bench.adapters.quire import version
from bench.adapters.quire_older import run

NAME = "Quire, Quick-Queue"

__all__ = ["NAME", "run", "version"]
