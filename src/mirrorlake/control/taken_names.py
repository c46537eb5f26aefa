"""Target names that a custom policy gives to two topics of a source."""

from collections.abc import Callable, Iterable, Mapping

from mirrorlake.config.topology import ResolvedFlow

#: Policies that give each topic its own name.
_OWN_NAMES = ("default", "identity")


class TakenNames:
    """Which source topic owns each target topic of a flow. Only one may, whatever is made later,
    since a position at the target says nothing of a second one. `checks.route_rules` has checked
    the topics that exist at the start."""

    def __init__(self, flow: ResolvedFlow, noted: Callable[[], Mapping[str, str]]) -> None:
        """`noted` are the target topics that were noted, by source topic."""
        self._flow, self._noted = flow, noted
        self._owners: dict[str, str] | None = None

    def by_other(self, topic: str) -> str | None:
        """The other topic that already owns this one's target name; None if none does."""
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
        """Why topics must not be mirrored, for those of these that the flow selects."""
        return {
            topic: f"flow {self._flow.name} mirrors topic {owner} into "
            f"{self._flow.target_topic(topic)} already; exclude one of them by topics_exclude, or "
            "change the policy so that each has its own name"
            for topic in sorted(filter(self._flow.selection.selects, topics))
            if (owner := self.by_other(topic)) is not None
        }
