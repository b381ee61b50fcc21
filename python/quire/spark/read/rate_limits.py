"""How the messages of one batch of a stream are dealt out to its topics."""

from __future__ import annotations

from collections.abc import Mapping


def split_limit(lags: Mapping[str, int], limit: int | None, turn: int = 0) -> dict[str, int]:
    """
    Return how many messages each topic may give.

    All of them if the limit allows. Else in proportion to what waits in each, but one at least, so
    that a small topic does not wait for a large one; if there are more topics than
    messages allowed, they take turns.

    Args:
        lags: How many messages wait in each topic.
        limit: How many may be given in all, 1 or more; None: no limit.
        turn: Which of the waiting topics is first when not all get a message.

    """
    total = sum(lags.values())
    if limit is None or total <= limit:
        return dict(lags)
    waiting = [topic for topic, lag in lags.items() if lag]
    if limit <= len(waiting):
        first = turn % len(waiting)
        chosen = [*waiting[first:], *waiting[:first]][:limit]
        return {topic: int(topic in chosen) for topic in lags}
    # After one message per topic, the rest is divided in proportion.
    dealt, rest = limit - len(waiting), total - len(waiting)
    parts = {topic: divmod(dealt * (lags[topic] - 1), rest) for topic in waiting}
    given = {topic: 1 + parts[topic][0] if topic in parts else 0 for topic in lags}
    by_fraction = sorted(parts, key=lambda topic: parts[topic][1], reverse=True)
    for topic in by_fraction[: limit - sum(given.values())]:
        given[topic] += 1
    return given
