"""What a flow does not see, and operators might miss later: deletions cleaned away while it did not
run, positions of groups that it leaves out, patterns that match no group, and groups that its
source did not list. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from mirrorlake.checks.problem import Problem, one_of_them
from mirrorlake.durations import duration

#: How many topics or groups a sentence names.
_NAMED = 3


def missed_deletions(flow: str, away_ms: float, kept_ms: Mapping[str, int]) -> Iterator[Problem]:
    """Compacted topics in which a deletion may have come and gone while a flow did not run.

    A broker keeps a tombstone for `delete.retention.ms` once its part of the log is clean (Kafka's
    documentation, "Log Compaction"): a later reader sees neither the record nor its deletion, and
    the mirror keeps the record.

    Args:
        flow: its name.
        away_ms: how long it has not run.
        kept_ms: `delete.retention.ms` of its compacted topics with records that it has not read.
    """
    gone = sorted(topic for topic, kept in kept_ms.items() if kept < away_ms)
    if gone:
        shortest = min(kept_ms[topic] for topic in gone)
        yield Problem(
            "missed-deletions",
            "note",
            (flow,),
            gone[0],
            sentence=f"flow {flow} has not run for {duration(away_ms)}, and compacted topics keep "
            f"deletions for less ({duration(shortest)} by delete.retention.ms): a key that was "
            f"deleted meanwhile may stay at the target in {_named('topic', gone)}",
            fix="compare the keys of both topics where such a key matters",
        )


def left_out_groups(flow: str, groups: Sequence[str]) -> Iterator[Problem]:
    """Groups with positions in topics that a flow excludes: after a failover they start over."""
    if groups:
        names = sorted(groups)
        yield Problem(
            "left-out-groups",
            "note",
            (flow,),
            names[0],
            sentence=f"flow {flow} leaves out {_named('group', names)}, with positions in topics "
            "that it mirrors: after a failover they find no position at the target",
            fix="let `groups` and `groups_exclude` select those that have to move",
        )


def unmatched_groups(flow: str, source: str, unmatched: Mapping[str, str]) -> Iterator[Problem]:
    """Patterns of `groups` by which a flow moves no group of its source: a misspelt one looks like
    one that works. Each has the name that is nearest to it, if there is one."""
    if unmatched:
        idle, near = next(iter(unmatched.items()))
        yield Problem(
            "no-match",
            "note",
            (flow,),
            idle,
            sentence=f"groups of flow {flow} holds {one_of_them(map(repr, unmatched))}, by which "
            f"it moves no group that cluster {source} shows now",
            fix=f"correct the pattern{f' (there is {near})' if near else ''}; a group that matches "
            "it and comes later is moved then",
        )


def unlisted_groups(flow: str, source: str, why: Sequence[str]) -> Iterator[Problem]:
    """A note that a flow's source may have more groups than it listed, and why."""
    if why:
        yield Problem(
            "unlisted-groups",
            "note",
            (flow,),
            source,
            sentence=f"cluster {source} did not tell of all its groups ({why[0]}): flow {flow} may "
            "have more of them than are counted, or named, here",
            fix="ask again when all its brokers answer",
        )


def _named(kind: str, names: Sequence[str]) -> str:
    """`topic a`, `topics a, b`, or `5 topics, such as a, b, c`."""
    listed = ", ".join(names[:_NAMED])
    if len(names) > _NAMED:
        return f"{len(names)} {kind}s, such as {listed}"
    return f"{kind}{'s' if len(names) > 1 else ''} {listed}"
