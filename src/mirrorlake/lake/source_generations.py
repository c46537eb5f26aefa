"""What the lake knows of the generations of a source cluster's topics."""

from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.generations import Begun, SourceGenerations


def begun_from(lake: Reader, alias: str) -> tuple[Begun, ...]:
    """All generations that topics of a source cluster, and partitions by themselves, have begun."""
    return tuple(Begun(**row) for row in lake.query_rows("generation_begins", source_cluster=alias))


def source_generations(lake: Reader, flow: str) -> SourceGenerations:
    """The generations of topics at the source of a flow, by the flow's name."""
    return SourceGenerations(begun_from(lake, flow.partition("->")[0]))
