"""Which offsets the next batch of a landing query reads, how they are shared out over tasks, and
how a query's checkpoint has them. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from mirrorlake.landing.pace import NOTHING_KNOWN, Pace, first_limit
from mirrorlake.offsets.positions import Ranges, TopicAndPartition, by_topic, from_topics

#: Records below which a partition's part of a batch is not divided: each part is a fetch of its
#: own.
UNDIVIDED = 20_000


def next_ends(
    reached: Mapping[TopicAndPartition, int],
    log_ends: Mapping[TopicAndPartition, int],
    max_records: int,
    waiting: Collection[TopicAndPartition] = (),
    pace: Pace = NOTHING_KNOWN,
) -> dict[TopicAndPartition, int]:
    """Where the next batch ends, for each partition of `reached`, which is where the one before
    did.

    Args:
        reached: next offsets.
        log_ends: ends of the logs, exclusive; partitions that did not answer are missing, and stay
            where they are.
        max_records: offsets of the batch, all partitions together. Where there are more, or more
            than `pace` allows (while it knows nothing: `pace.first_limit`), each gets a part of
            them in proportion to what it has, and at least one; of a cluster that is read in small
            answers few are cut (`_few_cut`).
        waiting: partitions that make no batch by themselves: they go along with others.
        pace: what batches before this one say of it.
    """
    # Of thousands few have some at a time.
    news = {key: end - reached[key] for key, end in log_ends.items() if end > reached.get(key, end)}
    if not any(key not in waiting for key in news):
        return dict(reached)
    size = pace.size_of(news)
    limit = first_limit(size) if pace.limit is None else pace.limit
    share = min(max_records / sum(news.values()), limit / max(1.0, size))
    if share < 1 and pace.in_small_answers:
        costs = {key: max(pace.bytes_of(key[0]) / limit, 1 / max_records) for key in news}
        news = _few_cut(news, costs)
    elif share < 1:
        news = {key: min(count, max(1, int(count * share))) for key, count in news.items()}
    return {**reached, **{key: reached[key] + count for key, count in news.items()}}


def _few_cut(
    news: Mapping[TopicAndPartition, int], costs: Mapping[TopicAndPartition, float]
) -> dict[TopicAndPartition, int]:
    """How many offsets of each partition make one batch, where not all do: those that have least
    are in it whole, as far as half of the batch goes, and what is left is for the one that has
    most. `costs` is the part of a batch that one offset takes.

    Kafka sends whole batches of its own, of up to a megabyte. Where a landing batch ends within one
    of them, it comes over the link once more for the next: with a part of each of many partitions
    that would be most of what comes. None waits for ever: it has least some time, or most.
    """
    *others, largest = sorted(news, key=lambda key: (news[key] * costs[key], key))
    kept = min(0.5, news[largest] * costs[largest])
    room, taken = 1.0 - kept, dict[TopicAndPartition, int]()
    for key in others:
        taken[key] = min(news[key], int(room / costs[key]))
        # what is cut takes all that is left, and rounding leaves none for one more
        room = room - taken[key] * costs[key] if taken[key] == news[key] else 0.0
    taken[largest] = min(news[largest], max(1, int((room + kept) / costs[largest])))
    return taken


def shared_out(
    ranges: Ranges, tasks: int, record_bytes: Mapping[str, float] | None = None
) -> list[dict[TopicAndPartition, tuple[int, int]]]:
    """Divide ranges into at most so many parts that are about as much work each: neighbours stay
    together, and only what lies across a border is cut, unless it is small.

    `record_bytes` is the size of a topic's records, as far as that is known; others are taken for
    average ones.
    """
    known = dict(record_bytes or {})
    usual = sum(known.values()) / len(known) if known else 1.0
    sizes = {key: known.get(key[0], usual) for key in ranges}
    share = sum((end - first) * sizes[key] for key, (first, end) in ranges.items()) / max(1, tasks)
    parts, room = [dict[TopicAndPartition, tuple[int, int]]()], share
    for key, (first, end) in ranges.items():
        at, size = first, sizes[key]
        while len(parts) < tasks and (end - at) * size > room and end - first > UNDIVIDED:
            if (taken := min(end - at, int(room / size))) > 0:
                parts[-1][key] = (at, at + taken)
                at += taken
            parts.append({})
            room = share
        if at < end:
            parts[-1][key] = (at, end)
            room -= (end - at) * size
        if room <= 0 and len(parts) < tasks:
            parts.append({})
            room = share
    return [part for part in parts if part]


def offsets_document(
    ends: Mapping[TopicAndPartition, int], noted: str | None = None
) -> dict[str, Any]:
    """Where a batch ends, and what it notes, as a query's checkpoint has it: the planner says it
    once, and the driver, which lands the batch or observes the query, reads it there."""
    return {"ends": by_topic(ends), "noted": noted}


def read_document(document: Mapping[str, Any]) -> tuple[dict[TopicAndPartition, int], str | None]:
    """The ends of `offsets_document`, and what is noted."""
    return from_topics(document["ends"]), document["noted"]
