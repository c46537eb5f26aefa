"""Target topics that are needed although the source does not report its topics: it does not answer,
or no longer has them. They are made as the lake knows them, and their generations begin."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from mirrorlake.control.target_comparison import TargetComparison
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.control.topic_making import TopicMaking
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo


class MadeUnreported(NamedTuple):
    """The known partition counts of target topics now, and the topics that failed, by source
    topic."""

    ready: dict[str, int]
    refused: dict[str, TargetRefused]


class UnreportedTopics:
    """The unreported topics of one flow."""

    def __init__(
        self, target: ClusterAdmin, generations: TargetGenerations, making: TopicMaking
    ) -> None:
        self._target, self._generations, self._making = target, generations, making
        #: Staged topics that the target refused: their target topics and least partition counts.
        self._unmade: dict[str, tuple[str, int]] = {}

    def unmade(self, planned: Collection[str]) -> dict[str, str]:
        """The target topics, by source topic, that the target refused to make or grow for staged
        records, except of the `planned` topics."""
        return {
            topic: target for topic, (target, _) in self._unmade.items() if topic not in planned
        }

    def make_again(
        self, comparison: TargetComparison, unmade: Mapping[str, str], silent: bool
    ) -> MadeUnreported:
        """Try again to make and grow target topics, by source topic: all that is `unmade` still."""
        self._unmade = {topic: one for topic, one in self._unmade.items() if topic in unmade}
        if not unmade:
            return MadeUnreported({}, {})
        return self.make_staged(comparison, unmade, dict(self._unmade.values()), silent)

    def begin_decided(
        self, comparison: TargetComparison, planned: Collection[str], silent: bool
    ) -> MadeUnreported:
        """Begin the decided generations of topics that are not among the `planned` ones; `silent`:
        the source does not answer."""
        left = {
            topic: target
            for topic, target in self._generations.names().items()
            if topic in comparison.decided and topic not in planned
        }
        if not left:
            return MadeUnreported({}, {})
        needed = {target: max(1, self._generations.partitions(target)) for target in left.values()}
        there, refused = self._make(comparison, left, needed, silent)
        living = self._generations.living.keys() & set(left.values())
        ready = {
            target: there[target].partitions if target in there else needed[target]
            for target in living
        }
        return MadeUnreported(ready, refused)

    def make_staged(
        self,
        comparison: TargetComparison,
        lacking: Mapping[str, str],
        needed: dict[str, int],
        silent: bool,
    ) -> MadeUnreported:
        """Make or grow target topics, by source topic, to at least `needed` partitions, since the
        stage holds records of them."""
        first = comparison.begin.keys() - comparison.decided
        fresh = {topic: target for topic, target in lacking.items() if topic in first}
        there, unmade = self._make(comparison, fresh, needed, silent)
        living = {
            topic: target
            for topic, target in lacking.items()
            if target in self._generations.living and topic not in unmade
        }
        counts = {name: info.partitions for name, info in there.items() if name in needed}
        short = {name for name in living.values() if counts.get(name, needed[name]) < needed[name]}
        refused = self._making.grow({name: needed[name] for name in sorted(short)})
        unmade |= {topic: refused[name] for topic, name in living.items() if name in refused}
        ready = {
            name: max(counts.get(name, 0), needed[name])
            for name in living.values()
            if name not in refused
        }
        others = {topic: one for topic, one in self._unmade.items() if topic not in lacking}
        self._unmade = others | {
            topic: (lacking[topic], needed[lacking[topic]]) for topic in unmade
        }
        return MadeUnreported(ready, unmade)

    def _make(
        self,
        comparison: TargetComparison,
        names: Mapping[str, str],
        needed: dict[str, int],
        silent: bool,
    ) -> tuple[Mapping[str, TopicInfo], dict[str, TargetRefused]]:
        """Make the target topics, by source topic, that do not exist, and begin the generations of
        all. Returns the topics that existed before, and those that failed, by source topic."""
        there = self._target.topics()
        lacking = {topic: target for topic, target in names.items() if target not in there}
        by_target = self._making.make_by_states(lacking, needed, silent)
        refused = {
            topic: by_target[target] for topic, target in names.items() if target in by_target
        }
        made = {topic: target for topic, target in names.items() if topic not in refused}
        return there, refused | self._generations.begin(comparison, made)
