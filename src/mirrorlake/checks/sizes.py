"""The largest records at a source and at its target: problems are reported before a record is
refused. Pure.

A broker's limit applies to a batch of records as sent, compressed. A flow's producer makes batches
of its own: a record compressed better at the source can be refused although both have one limit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mirrorlake.checks.problem import Problem

RULE = "record-sizes"


@dataclass(frozen=True)
class SizeLimit:
    """The largest batch that a source topic and its mirror accept, bytes: `max.message.bytes`.
    `codec` is the source topic's compression, None if its producers decide."""

    topic: str
    target_topic: str
    source: int
    target: int
    codec: str | None = None


def size_problems(
    flow: str,
    clusters: tuple[str, str],
    limits: Iterable[SizeLimit],
    *,
    batch_bytes: int,
    message_bytes: int,
    request_bytes: int | None = None,
    codec: str | None = None,
) -> Iterator[Problem]:
    """Notes on topics of a flow, one for all topics with the same numbers.

    Args:
        flow: its name.
        clusters: the aliases of its source and its target.
        limits: the limits of its topics.
        batch_bytes: the largest batch that the flow's producer makes (`batch.size`).
        message_bytes: the largest record that it accepts (`message.max.bytes`).
        request_bytes: the target brokers' `socket.request.max.bytes`, if they report it.
        codec: the compression of the flow, None if it may use a denser one when needed.
    """
    source, target = clusters
    known = list(limits)
    block = f"in the producer block of cluster {target}"

    def note(topic: str, sentence: str, fix: str) -> Problem:
        return Problem(RULE, "note", (flow,), topic, sentence=sentence, fix=fix)

    for (most, least), group in _grouped(known, lambda one: one.source > one.target):
        mirror = group[0].target_topic
        yield note(
            group[0].topic,
            f"{_topics(group)} of cluster {source} takes batches of up to {most:,} bytes "
            f"(max.message.bytes), and {mirror} of cluster {target} takes {least:,}: a record in "
            "between would be refused",
            f"set max.message.bytes of {mirror} to {most} or more, or message.max.bytes of the "
            f"brokers of {target}; with on_refused: park the flow goes on behind such records",
        )
    for (most, _), group in _grouped(known, lambda one: one.source > message_bytes):
        yield note(
            group[0].topic,
            f"{_topics(group)} of cluster {source} takes batches of up to {most:,} bytes "
            "(max.message.bytes), and the flow's producer takes records of up to "
            f"{message_bytes:,} (message.max.bytes)",
            f"set message.max.bytes {block} to {most} or more",
        )
    for (most, _), group in _grouped(
        known, lambda one: request_bytes is not None and one.source > request_bytes
    ):
        yield note(
            group[0].topic,
            f"{_topics(group)} of cluster {source} takes batches of up to {most:,} bytes "
            f"(max.message.bytes), and the brokers of {target} take requests of up to "
            f"{request_bytes:,} (socket.request.max.bytes): they close the connection on a larger "
            "one, and say nothing, so the flow would wait",
            f"set socket.request.max.bytes of the brokers of {target} to more than {most}",
        )
    for _, group in _grouped(
        known, lambda one: None not in (codec, one.codec) and one.codec != codec
    ):
        yield note(
            group[0].topic,
            f"{_topics(group)} of cluster {source} compresses by {group[0].codec} "
            f"(compression.type), and flow {flow} by {codec}: a record that just fits there may be "
            f"too large for {target}: brokers measure what is sent",
            f"leave out compression of flow {flow}, which then compresses more where it has to, or "
            f"set it to {group[0].codec}",
        )
    for (_, least), group in _grouped(known, lambda one: one.target < batch_bytes):
        mirror = group[0].target_topic
        yield note(
            group[0].topic,
            f"the flow's producer makes batches of up to {batch_bytes:,} bytes (batch.size), and "
            f"{mirror} of cluster {target} takes {least:,} (max.message.bytes): larger ones are "
            "refused, and written in parts: it is slow",
            f"set batch.size {block} to less than {least}, or raise max.message.bytes of {mirror}",
        )


def _grouped(
    limits: Iterable[SizeLimit], wanted: Callable[[SizeLimit], bool]
) -> Iterable[tuple[tuple[int, int], list[SizeLimit]]]:
    groups: dict[tuple[int, int], list[SizeLimit]] = {}
    for one in limits:
        if wanted(one):
            groups.setdefault((one.source, one.target), []).append(one)
    return groups.items()


def _topics(group: list[SizeLimit]) -> str:
    others = len(group) - 1
    more = f" (and {others} other topic{'s' if others > 1 else ''} so)" if others else ""
    return f"topic {group[0].topic}{more}"
