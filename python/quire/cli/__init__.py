"""The command ``quire``: a client of the library. One file per verb, imported when it is used."""

from quire.cli.entry import main

__all__ = ["main"]
