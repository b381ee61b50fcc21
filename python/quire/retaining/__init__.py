"""
Retention: removing old cycles that are no longer needed from a queue.

`pruning` has `quire.prune`; `retention` has the rule for `quire.open` and the thread that applies
it. A run takes its limits from `rule`, decides with `pruning_plan` which cycles to remove, and
saves them with `actions`. `maintenance` determines which readers still need a cycle, and removes
cycles; `archive --delete` uses it, too.
"""

from quire.retaining.prune_report import PrunedCycle, PruneReport

__all__ = ["PruneReport", "PrunedCycle"]
