"""Target topics: made, with their configs, and grown, before the first record needs them; never
made again unasked."""

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
from mirrorlake.landing.generations import made_again_since
from mirrorlake.landing.source_states import note_configs
from mirrorlake.naming.policy import check_topic_name
from mirrorlake.produce.batch import PartitionPlan

logger = logging.getLogger(__name__)

#: How old the target's last answer may be before a batch is handed to tasks, seconds. Tasks that
#: wait for a target that is gone hold the cores that other flows need.
ANSWERED_SECONDS = 2.0


class TopicsUnmade(Exception):
    """The target refused to make or grow a topic of this batch, or the topic is not the one that it
    was: plan it again without (`TargetTopics.closed`)."""


class TargetTopics:
    """Keeps the topics of one flow's target as its source has them. `left_out` says why topics are
    not mirrored."""

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        left_out: Mapping[str, str] | None = None,
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
            made_again=self._made_again,
        )
        self.acls = AclSync(
            flow,
            connections,
            event_log,
            remote_topic=self.remote_topic,
            mirrored=self.mirrored,
            on_read=partial(event_log.states.note_acls, flow.source),
        )
        self._lake, self._connections = deployment.lake, connections
        self._target: ClusterAdmin = connections.admin(flow.target)
        self._event_log = event_log
        self.left_out = dict(sorted((left_out or {}).items()))
        self._unmade = UnmadeTopics(flow.name, event_log.incidents)
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
        """The target topic of a source topic; None where it could not bear that name, or must not
        be mirrored."""
        if topic in self.left_out:
            return None
        name = self.flow.target_topic(topic)
        return None if check_topic_name(name) or self._taken.by_other(topic) else name

    def produced_topic(self, topic: str) -> str | None:
        """The target topic of a staged topic; None where its records are not to be produced
        (now)."""
        if topic not in self._produced:  # asked for each partition, again and again
            stays = not self.selection.selects(topic) or self.flow.pauses(topic)
            self._produced[topic] = None if stays else self.remote_topic(topic)
        return self._produced[topic]

    def closed(self) -> dict[str, TargetRefused | None]:
        """Source topics whose records must not be produced for now, and why; None where an operator
        stopped one, or has decided what has not begun."""
        with self._use:
            silent = self.generations.stopped | self.generations.decided
            return {
                **dict.fromkeys(silent),
                **self._denied.topics,
                **self.generations.waiting,
                **self._unmade.topics,
            }

    def _waiting(self) -> frozenset[str]:
        """Source topics of which one side is another topic than it was, until an operator has
        decided to go on: the retention of a topic that was made again may delete what its mirror
        holds, and a target topic that was made again is perhaps not ours."""
        with self._use:
            made_again = self._event_log.incidents.made_again(self.flow.name)
            return self.generations.stopped | self.generations.waiting.keys() | made_again

    def _made_again(self, topics: Set[str]) -> set[str]:
        """Those of some source topics that are other ones than were landed."""
        source = self._connections.admin(self.flow.source)
        return made_again_since(self._lake.now, source, topics)

    def decided(self) -> frozenset[str]:
        """Source topics of which an operator has decided how they go on, and which can begin."""
        with self._use:
            return self.generations.decided - self._unmade.topics.keys()

    def mirrored(self) -> frozenset[str]:
        """The target topics that the flow has written to, in any run, or was about to."""
        with self._use:
            return self.generations.targets()

    def target_generation(self, topic: str) -> int | None:
        """Which generation of its target topic a source topic is produced to; None where it is
        over, and no other one has begun. A topic that was never produced has its first one before
        it."""
        with self._use:
            target = self.remote_topic(topic)
            if target is None:
                # refused by now; what was written before is of the generation that it was of
                return self.generations.newest(topic)
            living = self.generations.living.get(target)
            if living is None:
                return None if target in self.generations.targets() else 0
            return living.number

    def mirror(self, topic: str) -> LivingMirror:
        """What a source topic is produced to."""
        with self._use:
            return LivingMirror(self.remote_topic(topic), self.target_generation(topic))

    def plan(self) -> list[TopicPlan]:
        """What the target lacks now, by asking both clusters."""
        self._there = self._connections.admin(self.flow.source).topics()
        left_out = {**self._taken.refused(self._there), **self.left_out}
        return compare_topics(self.flow, self._connections, left_out, self._there)

    def _note_configs(self, configs: Mapping[str, TopicConfigs]) -> None:
        note_configs(self._event_log.states, self.flow.source, self._there, configs)

    def refresh(self, begins: bool = True) -> list[TopicPlan]:
        """Make what is missing; returns the plans that were carried out or refused.

        Without `begins` nothing is done about topics that an operator has decided about: only the
        flow's own thread may, between two batches.
        """
        with self._use:
            plans = self._planned(begins)
            comparison = self._comparison(_names(plan for plan in plans if plan.action != "refuse"))
            later = comparison.waiting | comparison.stopped
            later |= frozenset() if begins else comparison.decided
            plans = [plan for plan in plans if plan.topic not in later]
            refused = self._making.carry_out(plans)
            wanted = (
                plan for plan in plans if plan.action != "refuse" and plan.topic not in refused
            )
            refused |= self.generations.begin(comparison, _names(wanted))
            if begins:
                refused |= self._begin_decided(comparison, {plan.topic for plan in plans})
            for plan in plans:
                if plan.target_topic in self.generations.living and plan.topic not in refused:
                    self._ready[plan.target_topic] = plan.partitions
            self._resume_denied()
            still = {*refused, *self._denied.topics, *(plan.topic for plan in refusals(plans))}
            self._unmade.replace(refused, still)
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
        """Go on without topics whose records the target does not take, until `check` finds that
        they may be written."""
        with self._use:
            self._denied.add(refusals)

    def _resume_denied(self) -> None:
        names = ((topic, self.remote_topic(topic)) for topic in self._denied.topics)
        self._denied.resume({topic: name for topic, name in names if name is not None})

    def _planned(self, begins: bool) -> list[TopicPlan]:
        """What the target lacks. Its own topics are watched even while the source does not
        answer."""
        try:
            plans = self.plan()
            self._silent = False
            return plans
        except ClusterUnusable as error:
            if error.alias == self.flow.source:
                self._silent = True
                comparison = self._comparison({})
                if begins:
                    self._unmade.topics.update(self._begin_decided(comparison, ()))
            raise

    def _comparison(self, names: Mapping[str, str]) -> TargetComparison:
        """Compare these target topics, by source topic, and all that were noted, with what is
        there."""
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

    def _begin_decided(
        self, comparison: TargetComparison, planned: Collection[str]
    ) -> dict[str, TargetRefused]:
        """Begin what an operator has decided about topics that the source does not report; returns
        those of which that cannot be done."""
        made = self._unreported.begin_decided(comparison, planned, self._silent)
        self._ready |= made.ready
        return made.refused

    def ensure(self, plans: Sequence[PartitionPlan]) -> None:
        """Be sure that the target answers and that the partitions of a batch are there; asks the
        clusters only for those not seen before.

        Raises:
            ClusterUnreachable: a cluster does not answer.
            TopicsUnmade: a topic is not there, and is not to be made now.
            TargetRefused: the target does not let us make one.
        """
        if time.monotonic() - self._answered > ANSWERED_SECONDS:
            self._target.cluster_id()
            self._answered = time.monotonic()
        if self._has_all(plans):  # a refresh may wait for a source that is away from here alone
            return
        with self._use:
            if self._has_all(plans):
                return
            try:
                self.refresh(begins=False)  # the batch goes by what was before
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
        """A topic that is gone at the source still has staged records: make it by what the stage
        holds."""
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
    """Their target topics by source topic."""
    return {plan.topic: plan.target_topic for plan in plans}
