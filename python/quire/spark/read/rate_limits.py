"""How the limit of a stream's batch is divided among its topics."""

from __future__ import annotations

from collections.abc import Mapping


def split_limit(lags: Mapping[str, int], limit: int | None, turn: int = 0) -> dict[str, int]:
    """
    Return how many messages of each topic a batch takes.

    All messages if the limit allows. Otherwise in proportion to the lag of each topic, but at least
    one, so that a small topic does not wait for a large one; if more topics have messages than the
    limit allows, they take turns.

    Args:
        lags: The number of messages to read in each topic.
        limit: The largest number of messages in the batch, 1 or more; None: no limit.
        turn: Which of the topics with messages comes first if not all get one.

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
