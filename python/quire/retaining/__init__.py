"""
Retention: removing old cycles from a queue, as far as nobody needs them any more.

`run` has `quire.prune`, `retention` the rule of `quire.open` and the thread that applies it. A run
goes from `rule` (the limits) by `plan` (which cycles go, which stay, and why) to `actions` (what is
saved before a cycle goes). Who still needs a cycle, and the order of a removal, are those of
`maintenance`: `archive --delete` uses them too.
"""

from __future__ import annotations

from quire.retaining.report import PrunedCycle, PruneReport
from quire.retaining.retention import Retention
from quire.retaining.run import prune

__all__ = ["PruneReport", "PrunedCycle", "Retention", "prune"]
