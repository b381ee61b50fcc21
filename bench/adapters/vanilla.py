"""Quire on a Vanilla Chronicle."""

from __future__ import annotations

from bench.adapters.quire import version
from bench.adapters.quire_older import run

NAME = "Quire, Vanilla Chronicle"

__all__ = ["NAME", "run", "version"]
