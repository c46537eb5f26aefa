"""Names at a target that a policy of the user's own gives to two topics of a source."""

from collections.abc import Callable, Iterable, Mapping

from mirrorlake.config.topology import ResolvedFlow

#: Policies that give each topic a name of its own.
_OWN_NAMES = ("default", "identity")


class TakenNames:
    """Which source topic each target topic of a flow gets the records of: one alone, whatever is
    made later, since a position at the target says nothing of another one. What is there at a start
    `checks.route_rules` has looked at."""

    def __init__(self, flow: ResolvedFlow, noted: Callable[[], Mapping[str, str]]) -> None:
        """`noted` are the target topics that were noted, by source topic."""
        self._flow, self._noted = flow, noted
        self._owners: dict[str, str] | None = None

    def by_other(self, topic: str) -> str | None:
        """The topic that has had the name first that this one would have; None for itself."""
        if self._flow.settings.policy in _OWN_NAMES:
            return None
        if self._owners is None:
            self._owners = {
                target: source
                for source, target in self._noted().items()
                if self._flow.selection.selects(source)
                and self._flow.target_topic(source) == target
            }
        owner = self._owners.setdefault(self._flow.target_topic(topic), topic)
        return None if owner == topic else owner

    def refused(self, topics: Iterable[str]) -> dict[str, str]:
        """Why some topics must not be mirrored, of those that the flow selects."""
        return {
            topic: f"flow {self._flow.name} mirrors topic {owner} into "
            f"{self._flow.target_topic(topic)} already; exclude one of them by topics_exclude, or "
            "change the policy so that each has its own name"
            for topic in sorted(filter(self._flow.selection.selects, topics))
            if (owner := self.by_other(topic)) is not None
        }
