"""The offsets of a landing query's next batch, over tasks, and in the query's checkpoint. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from mirrorlake.landing.pace import NOTHING_KNOWN, Pace, first_limit
from mirrorlake.offsets.positions import Ends, Ranges, TopicAndPartition, by_topic, from_topics

#: A partition's part of a batch with up to so many records is not divided: each is a fetch.
UNDIVIDED = 20_000


def news_of(reached: Ends, log_ends: Ends) -> Ranges:
    """What there is to read of each partition behind `reached`, where the last batch ended; both
    are next offsets. A partition that did not answer has no end, and so no news."""
    return {
        key: (reached[key], end) for key, end in log_ends.items() if end > reached.get(key, end)
    }


def next_ranges(
    news: Ranges,
    max_records: int,
    waiting: Collection[TopicAndPartition] = (),
    pace: Pace = NOTHING_KNOWN,
) -> Ranges:
    """What the next batch reads of `news`. Of thousands of partitions few have any at a time.

    Args:
        news: what there is to read, see `news_of`.
        max_records: the most offsets of the batch, all partitions together. If there are more, or
            more than `pace` allows (while it knows nothing: `pace.first_limit`), each partition
            gets a share in proportion to what it has, and at least one; if the cluster is read in
            small answers, few partitions are cut (`_few_cut`).
        waiting: partitions that make no batch by themselves, but join others.
        pace: what the batches before this one tell about it.
    """
    if all(key in waiting for key in news):
        return {}
    counts = {key: end - first for key, (first, end) in news.items()}
    size = pace.size_of(counts)
    limit = first_limit(size) if pace.limit is None else pace.limit
    share = min(max_records / sum(counts.values()), limit / max(1.0, size))
    if share >= 1:
        return news
    if pace.in_small_answers:
        costs = {key: max(pace.bytes_of(key[0]) / limit, 1 / max_records) for key in counts}
        counts = _few_cut(counts, costs)
    else:
        counts = {key: min(count, max(1, int(count * share))) for key, count in counts.items()}
    return {key: (news[key][0], news[key][0] + count) for key, count in counts.items() if count}


def _few_cut(
    news: Mapping[TopicAndPartition, int], costs: Mapping[TopicAndPartition, float]
) -> dict[TopicAndPartition, int]:
    """How many offsets of each partition make one batch, if not all fit: the partitions with the
    least are in it whole, up to half of the batch, and the partition with the most gets the rest.
    `costs` is the share of a batch that one offset takes.

    Kafka sends whole batches of its own, of up to a megabyte. If a landing batch ends within one of
    them, it crosses the link again for the next: with a part of each of many partitions that would
    be most of the traffic. None waits for ever: at some time it has the least, or the most.
    """
    *others, largest = sorted(news, key=lambda key: (news[key] * costs[key], key))
    kept = min(0.5, news[largest] * costs[largest])
    room, taken = 1.0 - kept, dict[TopicAndPartition, int]()
    for key in others:
        taken[key] = min(news[key], int(room / costs[key]))
        # a partition that is cut takes all that is left; rounding must not leave room for another
        room = room - taken[key] * costs[key] if taken[key] == news[key] else 0.0
    taken[largest] = min(news[largest], max(1, int((room + kept) / costs[largest])))
    return taken


def shared_out(
    ranges: Ranges, tasks: int, record_bytes: Mapping[str, float] | None = None
) -> list[dict[TopicAndPartition, tuple[int, int]]]:
    """Divide ranges into at most `tasks` parts of about equal work. Neighbours stay together; only
    a range across a border is cut, unless it is small.

    `record_bytes` are the known sizes of topics' records; other topics count as average.
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
    """The end of a batch, and its note, as in a query's checkpoint: the planner writes it once, and
    the driver, which lands the batch or observes the query, reads it there."""
    return {"ends": by_topic(ends), "noted": noted}


def read_document(document: Mapping[str, Any]) -> tuple[dict[TopicAndPartition, int], str | None]:
    """The ends of `offsets_document`, and the note."""
    return from_topics(document["ends"]), document["noted"]
