"""Names of mirrors that a target would refuse because of a similar name. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mirrorlake.checks.problem import Problem

RULE = "colliding-names"


class Made(NamedTuple):
    """A topic of a flow's source, and the mirror that would be made for it."""

    flow: str
    topic: str
    target_topic: str


def colliding_names(target: str, made: Iterable[Made], there: Iterable[str]) -> Iterator[Problem]:
    """Mirrors whose names differ from another topic of the target only in dots and underscores:
    brokers refuse the second one, since both have one name in their metrics (Kafka's
    `Topic.unifyCollisionChars`).

    Args:
        target: the alias of the cluster.
        made: mirrors that would be made there, of all flows, in their order.
        there: names of its existing topics.
    """
    known = {_of_metrics(name): name for name in there}
    for flow, topic, name in made:
        other = known.setdefault(_of_metrics(name), name)
        if other != name:
            yield Problem(
                RULE,
                "note",
                (flow,),
                topic,
                sentence=f"topic {topic} of flow {flow} would be {name}, which cluster {target} "
                f"refuses beside {other}: brokers take no two names that differ in dots and "
                "underscores only",
                fix="exclude it by topics_exclude, give the flow another separator or policy, or "
                f"delete {other} if it is not needed",
            )


def _of_metrics(name: str) -> str:
    return name.replace(".", "_")
