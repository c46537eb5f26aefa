"""Makes target topics with their configs, and grows them, before the first record needs them; never
remakes one without an operator's decision."""

import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import partial

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.control.denied_topics import DeniedTopics
from mirrorlake.control.kept_alike import KeptAlike
from mirrorlake.control.taken_names import TakenNames
from mirrorlake.control.target_comparison import TargetComparison
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.control.topic_comparison import compare_topics
from mirrorlake.control.topic_making import TopicMaking
from mirrorlake.control.topic_plan import TopicPlan, refusals
from mirrorlake.control.unmade_topics import UnmadeTopics
from mirrorlake.control.unreported_topics import UnreportedTopics
from mirrorlake.errors import ClusterUnusable, TargetRefused, TopicRefused
from mirrorlake.kafka.access import topic_rights
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicConfigs, TopicInfo
from mirrorlake.lake.changes import PendingChanges
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.landing.generations import SinceLanded, since_landed
from mirrorlake.landing.source_states import note_configs
from mirrorlake.naming.policy import check_topic_name
from mirrorlake.produce.batch import PartitionPlan

logger = logging.getLogger(__name__)

#: How old the target's last answer may be before a batch is handed to tasks, seconds. Tasks that
#: wait for a lost target hold the cores that other flows need.
ANSWERED_SECONDS = 2.0


class TopicsUnmade(Exception):
    """The target refused to make or grow a topic of this batch, or the topic is not the same one
    any more: plan the batch again without it (`TargetTopics.closed`)."""


class TargetTopics:
    """Keeps a flow's target topics as the source's. `left_out` says why some are not mirrored."""

    def __init__(
        self, flow: ResolvedFlow, deployment: Deployment, left_out: Mapping[str, str] | None = None
    ) -> None:
        connections, event_log = deployment.connections, deployment.event_log
        self.flow = flow
        self.selection = flow.selection
        self.configs = ConfigSync(
            flow,
            connections,
            event_log,
            self.remote_topic,
            on_read=self._note_configs,
            waiting=self._waiting,
            since_landed=self._since_landed,
        )
        self.acls = AclSync(
            flow,
            connections,
            event_log,
            remote_topic=self.remote_topic,
            mirrored=self.mirrored,
            on_read=partial(event_log.states.note_acls, flow.source),
            waiting=self._waiting,
            since_landed=self._since_landed,
        )
        self._lake, self._connections = deployment.lake, connections
        self._target: ClusterAdmin = connections.admin(flow.target)
        self._event_log = event_log
        self.left_out = dict(sorted((left_out or {}).items()))
        self._unmade = UnmadeTopics(flow.name, event_log.incidents, self.selection.selects)
        self._denied = DeniedTopics(
            flow.name, event_log.incidents, lambda names: topic_rights(self._target.client, names)
        )
        self.generations = TargetGenerations(
            deployment.lake, flow.name, self._target, event_log.incidents
        )
        self._taken = TakenNames(flow, self.generations.names)
        self._pending = PendingChanges(event_log, flow.name)
        self._making = TopicMaking(
            flow,
            self._target,
            configs=self.configs,
            acls=self.acls,
            states=event_log.states,
            pending=self._pending,
        )
        self._unreported = UnreportedTopics(self._target, self.generations, self._making)
        self._produced: dict[str, str | None] = {}
        self._there: Mapping[str, TopicInfo] = {}
        self._ready: dict[str, int] = {}  # target topic -> partitions known to be there
        self._answered = float("-inf")
        self._silent = False
        self._use = threading.RLock()  # control refreshes while the flow produces
        self.kept_alike = KeptAlike(flow, self.configs, self.acls, self._use)

    def remote_topic(self, topic: str) -> str | None:
        """A source topic's target topic; None if the name is taken, or it must not be mirrored."""
        if topic in self.left_out:
            return None
        name = self.flow.target_topic(topic)
        return None if check_topic_name(name) or self._taken.by_other(topic) else name

    def produced_topic(self, topic: str) -> str | None:
        """A staged topic's target topic; None where its records are not to be produced (now)."""
        if topic not in self._produced:  # asked for each partition, repeatedly
            stays = not self.selection.selects(topic) or self.flow.pauses(topic)
            self._produced[topic] = None if stays else self.remote_topic(topic)
        return self._produced[topic]

    def closed(self) -> dict[str, TargetRefused | None]:
        """Source topics whose records must not be produced for now, and why; None for those that an
        operator stopped, or whose decided generation has not begun."""
        with self._use:
            silent = self.generations.stopped | self.generations.decided
            return {
                **dict.fromkeys(silent),
                **self._denied.topics,
                **self.generations.waiting,
                **self._unmade.topics,
            }

    def _waiting(self) -> frozenset[str]:
        """Source topics for which an operator must first decide, since the source or target topic
        was made again: the new source topic's retention may delete what the mirror holds, and a new
        target topic may not be ours."""
        with self._use:
            made_again = self._event_log.incidents.other_logs(self.flow.name).topics
            return self.generations.stopped | self.generations.waiting.keys() | made_again

    def _since_landed(self, topics: Set[str]) -> SinceLanded:
        """Which of these source topics were made again since they were landed, or may have been."""
        return since_landed(self._lake.now, self._connections.admin(self.flow.source), topics)

    def decided(self) -> frozenset[str]:
        """Source topics about which an operator has decided, and whose generation can begin."""
        with self._use:
            return self.generations.decided - self._unmade.topics.keys()

    def mirrored(self) -> frozenset[str]:
        """The target topics that the flow has written to, in any run, or was about to."""
        with self._use:
            return self.generations.targets()

    def target_generation(self, topic: str) -> int | None:
        """The generation of its target topic that a source topic is produced to; None if that is
        over and no other one has begun; 0 for a topic that was never produced."""
        with self._use:
            target = self.remote_topic(topic)
            if target is None:
                # refused by now; earlier records belong to the newest noted generation
                return self.generations.newest(topic)
            living = self.generations.living.get(target)
            if living is None:
                return None if target in self.generations.targets() else 0
            return living.number

    def mirror(self, topic: str) -> LivingMirror:
        """The target topic and generation that a source topic is produced to."""
        with self._use:
            return LivingMirror(self.remote_topic(topic), self.target_generation(topic))

    def plan(self) -> list[TopicPlan]:
        """What the target lacks now; queries both clusters."""
        self._there = self._connections.admin(self.flow.source).topics()
        left_out = {**self._taken.refused(self._there), **self.left_out}
        return compare_topics(self.flow, self._connections, left_out, self._there)

    def _note_configs(self, configs: Mapping[str, TopicConfigs]) -> None:
        note_configs(self._event_log.states, self.flow.source, self._there, configs)

    def refresh(self, begins: bool = True) -> list[TopicPlan]:
        """Make what is missing; return the plans that were carried out or refused.

        Without `begins`, topics with an operator's decision are left alone: only the flow's own
        thread may begin their generations, between two batches.
        """
        with self._use:
            plans = self._planned(begins)
            unmade = self._unreported.unmade(_names(plans))
            mirrored = _names(plan for plan in plans if plan.action != "refuse")
            comparison = self._comparison(mirrored | unmade)
            later = comparison.waiting | comparison.stopped
            later |= frozenset() if begins else comparison.decided
            plans = [plan for plan in plans if plan.topic not in later]
            refused = self._making.carry_out(plans)
            wanted = (
                plan for plan in plans if plan.action != "refuse" and plan.topic not in refused
            )
            refused |= self.generations.begin(comparison, _names(wanted))
            refused |= self._make_unreported(comparison, unmade, _names(plans), begins)
            for plan in plans:
                if plan.target_topic in self.generations.living and plan.topic not in refused:
                    self._ready[plan.target_topic] = plan.partitions
            self._resume_denied()
            tried = {*_names(plans), *unmade}
            still = {*refused, *self._denied.topics, *_names(refusals(plans))}
            still |= frozenset() if begins else comparison.decided  # not tried
            self._unmade.replace(refused, still, tried)
            done = self._unmade.report_plans([plan for plan in plans if plan.action != "none"])
            done = [plan for plan in done if plan.topic not in refused]
            self._pending.record([plan.row() for plan in refusals(done)])
            return done

    def check(self) -> None:
        """Compare the target's topics with those that were noted; changes nothing on the target."""
        with self._use:
            self._comparison({})
            self._resume_denied()

    def deny(self, refusals: Iterable[TopicRefused]) -> None:
        """Go on without topics that the target refuses, until `check` finds them writable."""
        with self._use:
            self._denied.add(refusals)

    def caught_up(self) -> None:
        """Note that the flow has come to the end of the stage. Without the lock, under which a
        refresh may wait for a cluster."""
        self._unmade.caught_up = True

    def flow_ends(self) -> None:
        """Keep denied topics as they are from now on: the next run tries them again."""
        with self._use:
            self._denied.end()
            self._unmade.flow_ends(self._denied.topics)

    def _resume_denied(self) -> None:
        names = ((topic, self.remote_topic(topic)) for topic in self._denied.topics)
        self._denied.resume({topic: name for topic, name in names if name is not None})

    def _planned(self, begins: bool) -> list[TopicPlan]:
        """What the target lacks. Its own topics are compared also while the source is silent."""
        try:
            plans = self.plan()
            self._silent = False
            return plans
        except ClusterUnusable as error:
            if error.alias == self.flow.source:
                self._silent = True
                unmade = self._unreported.unmade(())
                comparison = self._comparison(unmade)
                refused = self._make_unreported(comparison, unmade, (), begins)
                tried = unmade.keys() | (comparison.decided if begins else ())
                self._unmade.add(refused, tried - refused.keys())
            raise

    def _comparison(self, names: Mapping[str, str]) -> TargetComparison:
        """Compare these topics, by source topic, and all noted ones with what the target has."""
        noted = {
            topic: target
            for topic, target in self.generations.names().items()
            if self.selection.selects(topic) and self.remote_topic(topic) == target
        }
        wanted = {**noted, **names}
        comparison = self.generations.comparison(wanted)
        for topic in wanted.keys() - comparison.living.keys():
            self._ready.pop(wanted[topic], None)
        return comparison

    def _make_unreported(
        self,
        comparison: TargetComparison,
        unmade: Mapping[str, str],
        planned: Collection[str],
        begins: bool,
    ) -> dict[str, TargetRefused]:
        """Make again what the target refused for staged records; if `begins`, begin decided
        generations of topics that the source does not report; return failures, by source topic."""
        made = [self._unreported.make_again(comparison, unmade, self._silent)]
        if begins:
            made.append(self._unreported.begin_decided(comparison, planned, self._silent))
        refused: dict[str, TargetRefused] = {}
        for one in made:
            self._ready |= one.ready
            refused |= one.refused
        return refused

    def ensure(self, plans: Sequence[PartitionPlan]) -> None:
        """Ensure that the target answers and that the partitions of a batch exist; queries the
        clusters only for partitions not seen before.

        Raises:
            ClusterUnreachable: a cluster does not answer.
            TopicsUnmade: a topic does not exist, and must not be made now.
            TargetRefused: the target refuses to make a topic.
        """
        if time.monotonic() - self._answered > ANSWERED_SECONDS:
            self._target.cluster_id()
            self._answered = time.monotonic()
        if self._has_all(plans):  # a refresh may wait for a source that only we cannot reach
            return
        with self._use:
            if self._has_all(plans):
                return
            try:
                self.refresh(begins=False)  # the batch was planned by the earlier state
            except ClusterUnusable as error:
                if error.alias != self.flow.source:
                    raise
                how = "making target topics as the lake knows them"
                logger.warning("flow %s: %s; %s", self.flow.name, error, how)
            if not any(plan.topic in self.closed() for plan in plans):
                self._make_staged(plans)
            if any(plan.target_topic not in self._ready for plan in plans):
                raise TopicsUnmade

    def _has_all(self, plans: Sequence[PartitionPlan]) -> bool:
        """Whether the target is known to have the partitions of a batch."""
        return all(plan.partition < self._ready.get(plan.target_topic, 0) for plan in plans)

    def _make_staged(self, plans: Sequence[PartitionPlan]) -> None:
        """Make topics that are gone at the source but staged, by what the lake knows of them."""
        needed: dict[str, int] = {}
        for plan in plans:
            needed[plan.target_topic] = max(needed.get(plan.target_topic, 0), plan.partition + 1)
        lacking = {
            plan.topic: plan.target_topic
            for plan in plans
            if needed[plan.target_topic] > self._ready.get(plan.target_topic, 0)
        }
        if not lacking:
            return
        comparison = self._comparison(lacking)
        made = self._unreported.make_staged(comparison, lacking, needed, self._silent)
        self._ready |= made.ready
        self._unmade.add(made.refused)


def _names(plans: Iterable[TopicPlan]) -> dict[str, str]:
    return {plan.topic: plan.target_topic for plan in plans}
