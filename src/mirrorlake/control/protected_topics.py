"""Target topics have their ACLs before they are made, or are not made: one without them may be open
to all principals."""

from collections.abc import Mapping, Sequence

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.topic_states import TopicState, applying_acls


class ProtectedTopics:
    """The ACLs of target topics of one flow that are about to be made. For one thread at a time, as
    its `acls` are."""

    def __init__(self, flow: ResolvedFlow, acls: AclSync) -> None:
        self._flow, self._acls = flow, acls

    def make(
        self, names: Mapping[str, str], states: Mapping[str, TopicState] | None = None
    ) -> dict[str, TargetRefused]:
        """Make the ACLs of target topics; returns those topics of which the target refused some, by
        source topic: these must not be made. Nothing for a flow that does not keep ACLs alike, or a
        target without an authorizer.

        Args:
            names: the target topics by source topic.
            states: how the source's topics were, where it is not asked.

        Raises:
            ClusterUnreachable: a cluster does not answer.
        """
        if not names or not self._flow.settings.sync_topic_acls_enabled:
            return {}
        if states is None:
            self._acls.sync()
        else:
            stated = {acl for topic in names if topic in states for acl in states[topic].acls or ()}
            self._acls.make_stated(stated, names)
        lacking = applying_acls(names.values(), self._acls.undone)
        return {
            topic: self._refusal(name, lacking[name])
            for topic, name in names.items()
            if lacking[name]
        }

    def _refusal(self, name: str, lacking: Sequence[Acl]) -> TargetRefused:
        one = lacking[0]
        return TargetRefused(
            f"topic {name} is not made on cluster {self._flow.target}, since {len(lacking)} ACLs "
            f"that it has to have could not be made, such as {one.permission} {one.operation} for "
            f"{one.principal} ({self._acls.undone[one] or 'refused a short while ago'}); let the "
            "flow make ACLs there, or set sync_topic_acls_enabled: false",
            topic=name,
            reason="ACLS_REFUSED",
        )
