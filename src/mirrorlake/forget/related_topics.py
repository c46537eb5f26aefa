"""Where else a lake may hold the records that are to be forgotten. Pure.

A mirror that is a source of another flow is staged too, under the alias of its cluster; so is a
topic whose cluster has two aliases, and a topic that a replay or a restore wrote to. `forget`
deletes from one topic of one alias, and names the others.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from sqlglot import exp, parse_one
from sqlglot.dialects.databricks import Databricks

StagedTopic = tuple[str, str]
"""The alias of a source cluster, and a topic of it."""

#: Columns of `records` that stay the same wherever a record is mirrored.
_CONTENT = frozenset({"key", "value", "headers", "timestamp", "timestamp_ms", "header_names"})


def topics_with_same_records(
    begun: Collection[StagedTopic],
    mirrors: Iterable[tuple[str, str, str]],
    aliases: Mapping[str, str],
    staged: Collection[StagedTopic],
) -> list[StagedTopic]:
    """The other staged topics whose records come from the given topics, or from which theirs come.

    Args:
        begun: the given topics.
        mirrors: of each flow, replay and restore: its name, a source topic and its target topic.
        aliases: ids of clusters by their aliases.
        staged: the topics in the stage.
    """
    near: dict[StagedTopic, set[StagedTopic]] = defaultdict(set)
    for flow, topic, target_topic in mirrors:
        source, _, target = flow.partition("->")
        one, other = (source.rpartition(":")[2], topic), (target, target_topic)
        near[one].add(other)
        near[other].add(one)
    related, left = set(begun), list(begun)
    while left:
        alias, topic = place = left.pop()
        twins = {
            (other, topic) for other, cluster in aliases.items() if cluster == aliases.get(alias)
        }
        fresh = (near[place] | twins) - related
        related |= fresh
        left += fresh
    return sorted((related & set(staged)) - set(begun))


def is_about_content(where: str) -> bool:
    """Whether a valid predicate uses only columns that are mirrored with a record."""
    tree = parse_one(f"SELECT 1 FROM records WHERE {where}", dialect=Databricks)
    names = {
        (column.parts[0] if column.parts else column).name.lower()
        for column in tree.find_all(exp.Column)
    }
    return names <= _CONTENT
