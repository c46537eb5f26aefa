"""Keeps configs of target topics as `control.config_plan` wants them: at creation, and later."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from mirrorlake.config.precedence import leading_opposite
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.config_plan import (
    UNLIMITED,
    ConfigChange,
    ConfigPair,
    ConfigRules,
    creation_configs,
    plan_mirror,
)
from mirrorlake.control.repeats import Contests, RefusedChanges
from mirrorlake.kafka.admin_configs import Described, alter_topic_configs, describe_topic_configs
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicConfigs
from mirrorlake.lake.changes import Change, ChangeLog, PendingChanges
from mirrorlake.landing.generations import SAME, SinceLanded

logger = logging.getLogger(__name__)


class _Compared(NamedTuple):
    """The changes that a comparison found, and the topics with configs not reported."""

    changes: list[ConfigChange]
    refused: list[Change]


class ConfigSync:
    """Topic configs of a flow. Each call asks both clusters. Raises ClusterUnreachable."""

    def __init__(
        self,
        flow: ResolvedFlow,
        connections: Connections,
        log: ChangeLog,
        remote_topic: Callable[[str], str | None],
        on_read: Callable[[Mapping[str, TopicConfigs]], object] = lambda configs: None,
        waiting: Callable[[], Set[str]] = frozenset,
        since_landed: Callable[[Set[str]], SinceLanded] = lambda topics: SAME,
    ) -> None:
        """Prepare. `remote_topic` gives the target topic of a source topic, None if it cannot have
        one. `on_read` gets the configs that the source reports, each time. `waiting` gives the
        topics that wait for a decision, whose mirrors stay unchanged; `since_landed` gives those of
        some source topics that are about to wait, and those of which that is not known."""
        settings = flow.settings
        self.flow = flow
        self._selection = flow.selection
        self.rules = ConfigRules(settings.config_properties_exclude, settings.use_defaults_from)
        self._leader = leading_opposite(connections.topology, flow)
        self._source = connections.admin(flow.source)
        self._target = connections.admin(flow.target)
        self._pending = PendingChanges(log, flow.name)
        self._remote_topic = remote_topic
        self._on_read = on_read
        self._waiting, self._since_landed = waiting, since_landed
        self._refusals = RefusedChanges()
        #: Why configs are not as at the source, for each that `sync` could not make so.
        self.undone: Sequence[str] = ()
        self._contests = Contests()
        #: The pairs that needed no change at the last comparison, by source topic.
        self._alike: dict[str, ConfigPair] = {}
        #: When `sync` compared both sides last, by the monotonic clock.
        self.compared_at = float("-inf")

    def creation(self, factors: Mapping[str, int]) -> dict[str, dict[str, str]]:
        """Configs of new mirrors, by source topic; `factors` are the mirrors' replication factors.

        A source topic that is gone, or whose configs are not reported, adds none of its own.
        """
        configs = describe_topic_configs(self._source, factors).configs
        self._on_read(configs)
        return {
            topic: creation_configs(self.rules, configs.get(topic, {}), factor)
            for topic, factor in factors.items()
        }

    def not_kept(self, topic: str, refused: Mapping[str, tuple[str, str]]) -> None:
        """Report configs that a target topic was made without because the target refused them;
        `refused` has the value and the target's error by key. An unknown limit of UNLIMITED is not
        reported: there is nothing to lift."""
        concerned = {key: refusal for key, refusal in refused.items() if key not in UNLIMITED}
        changes = {
            ConfigChange(topic, topic, key, None, value): error
            for key, (value, error) in concerned.items()
        }
        rows = [
            change.row(error)
            for change, error in changes.items()
            if self._refusals.is_news(_key(change), error)
        ]
        self._log_and_record(rows)

    def plan(self) -> list[ConfigChange]:
        """What would change now, or be refused, on topics that both sides have."""
        changes = self._compare().changes
        now = self._since_landed({change.topic for change in changes}) if changes else SAME
        return [
            replace(change, refusal=self._unknown(change.topic))
            if change.topic in now.unknown
            else change
            for change in changes
            if change.topic not in now.made_again
        ]

    def sync(self) -> list[Change]:
        """Change what differs, and nothing else; return the rows written to `changes`.

        A refused change does not stop the others. It is reported once, and tried again after
        RETRY_REFUSED_SECONDS. So is a change that another party undoes repeatedly.
        """
        began = time.monotonic()
        compared = self._compare()
        due = [change for change in compared.changes if not self._refusals.waits(_key(change))]
        due, unknown = self._of_same_topics(due)
        refused = [*compared.refused, *unknown]
        differing = {_key(change) for change in compared.changes}
        unreported = {row.resource for row in refused}
        self._refusals.keep(differing | unreported)
        errors: dict[ConfigChange, str | None] = {change: self._objection(change) for change in due}
        errors.update(
            alter_topic_configs(self._target, [change for change in due if errors[change] is None])
        )
        rows = [row for row in refused if self._refusals.is_news(row.resource, row.error or "")]
        for change, error in errors.items():
            if error is None:
                self._contests.made(_key(change))
            if error is None or self._refusals.is_news(_key(change), error):
                rows.append(change.row(error))
        done = {_key(change) for change, error in errors.items() if error is None}
        self.undone = self._refusals.standing((differing - done) | unreported)
        self._log_and_record(rows)
        self.compared_at = began  # one that failed in between is done anew
        return rows

    def _of_same_topics(
        self, changes: Sequence[ConfigChange]
    ) -> tuple[list[ConfigChange], list[Change]]:
        """The changes of topics that are the landed ones still, and a row for each mirror of one of
        which the source does not say that. Asked after the configs: a topic that is made again in
        between is not known yet."""
        now = self._since_landed({change.topic for change in changes}) if changes else SAME
        names = {change.target_topic: change.topic for change in changes}
        rows = [
            Change("config", name, outcome="refused", error=self._unknown(topic))
            for name, topic in sorted(names.items())
            if topic in now.unknown
        ]
        others = now.made_again | now.unknown
        return [change for change in changes if change.topic not in others], rows

    def _unknown(self, topic: str) -> str:
        return (
            f"cluster {self.flow.source} does not say whether topic {topic} is the one that was "
            "mirrored: the configs of its mirror stay until it does"
        )

    def _objection(self, change: ConfigChange) -> str | None:
        """Why a change is not even sent, None if it is."""
        if self._contests.is_contested(_key(change)):
            return (
                f"another tool or operator keeps changing {change.key} of topic "
                f"{change.target_topic} back; stop that, or exclude the key with "
                "config_properties_exclude"
            )
        return change.refusal or None

    def _compare(self) -> _Compared:
        names = self._names()
        source = describe_topic_configs(self._source, names)
        self._on_read(source.configs)  # now: the target may not answer
        there = self._target.topics()
        pairs = {topic: name for topic, name in names.items() if name in there}
        target = describe_topic_configs(self._target, pairs.values())
        described = [
            ConfigPair(topic, name, source.configs[topic], target.configs[name], there[name].factor)
            for topic, name in pairs.items()
            if topic in source.configs and name in target.configs
        ]
        changes = self._changes(described)
        return _Compared(changes, self._configs_unreported(pairs, source, target))

    def _changes(self, pairs: Collection[ConfigPair]) -> list[ConfigChange]:
        """The changes; none for pairs that needed none before and are the same now."""
        alike, self._alike = self._alike, {}
        changes = list[ConfigChange]()
        for pair in pairs:
            different = [] if alike.get(pair.topic) == pair else plan_mirror(self.rules, pair)
            changes += different
            if not different:
                self._alike[pair.topic] = pair
        return changes

    def _names(self) -> dict[str, str]:
        """Target topics by source topic, of those that do not wait, whether they exist or not."""
        waiting = self._waiting()
        names = {
            topic: self._remote_topic(topic)
            for topic in self._source.topics()
            if self._selection.selects(topic) and topic not in waiting
        }
        return {
            topic: name
            for topic, name in names.items()
            if name is not None and not self._is_led(topic, name)
        }

    def _is_led(self, topic: str, name: str) -> bool:
        return self._leader is not None and topic == name and self._leader.selects(topic)

    def _configs_unreported(
        self, pairs: Mapping[str, str], source: Described, target: Described
    ) -> list[Change]:
        rows = []
        for topic, name in pairs.items():
            for alias, shown, refused in (
                (self.flow.source, topic, source.refused),
                (self.flow.target, name, target.refused),
            ):
                if shown in refused:
                    error = (
                        f"cluster {alias} does not report the configs of topic {shown}: "
                        f"{refused[shown]}"
                    )
                    rows.append(Change("config", name, outcome="refused", error=error))
        return rows

    def _log_and_record(self, rows: list[Change]) -> None:
        for row in rows:
            if row.outcome == "refused":
                change = row.after or "its configs"
                logger.warning(
                    "flow %s: topic %s: %s: %s", self.flow.name, row.resource, change, row.error
                )
        done = sum(row.outcome == "done" for row in rows)
        if done:
            logger.info(
                "flow %s: changed %d topic configs on %s", self.flow.name, done, self.flow.target
            )
        self._pending.record(rows)


def _key(change: ConfigChange) -> tuple[str, str, str | None]:
    return change.target_topic, change.key, change.after
