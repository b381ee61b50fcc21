"""
Retention: removing old cycles from a queue, as far as nobody needs them any more.

`pruning` has `quire.prune`; `retention` has the rule for `quire.open` and the thread that applies
it. A run takes its limits from `rule`, decides with `pruning_plan` which cycles go and which stay,
and saves what goes with `actions`. `maintenance` knows who still needs a cycle and how to remove
one: `archive --delete` uses it, too.
"""

from quire.retaining.prune_report import PrunedCycle, PruneReport

__all__ = ["PruneReport", "PrunedCycle"]
