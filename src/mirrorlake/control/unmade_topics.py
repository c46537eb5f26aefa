"""Topics that a flow goes on without: the target would not make or grow them, or they must not be
mirrored."""

from collections.abc import Collection, Mapping, Sequence

from mirrorlake.control.topic_plan import TopicPlan, refusals
from mirrorlake.errors import ReplicationError, TargetRefused
from mirrorlake.lake.incidents import Incidents

_KIND = "topic_refused"


class UnmadeTopics:
    """The unmade topics of one flow, each reported once. `topics` are source topics that the target
    refused, with its answer; each refresh tries them again, also those that the source has no
    more."""

    def __init__(self, flow: str, incidents: Incidents) -> None:
        self.topics: dict[str, TargetRefused] = {}
        self._flow = flow
        self._incidents = incidents
        self._still: set[str] | None = None  # None until the first refresh
        self._reported: set[TopicPlan] = set()

    def replace(self, refused: Mapping[str, TargetRefused], still: Collection[str]) -> None:
        """Set all refusals of a refresh; close incidents about topics other than `still`."""
        self._tell(refused)
        if self._still is None or (self._still | self.topics.keys()) - set(still):
            # an earlier process may have reported some
            self._incidents.close_except(self._flow, _KIND, still)
        self._still = set(still)
        self.topics = dict(sorted(refused.items()))

    def add(self, refused: Mapping[str, TargetRefused], made: Collection[str] = ()) -> None:
        """Add refusals since the last refresh; topics that were `made` are refused no more."""
        self._tell(refused)
        over = self.topics.keys() & {*made}
        if over:
            about = (self._flow, _KIND)
            self._incidents.close(lambda key: key[:2] == about and key.topic in over)
        known = {topic: error for topic, error in self.topics.items() if topic not in over}
        self.topics = dict(sorted({**known, **refused}.items()))

    def report_plans(self, plans: Sequence[TopicPlan]) -> list[TopicPlan]:
        """Report planned topics that must not be mirrored; `plans` are all present ones. Returns
        the plans except those reported before."""
        self._reported.intersection_update(plans)  # one that comes back is reported again
        fresh = [plan for plan in plans if plan not in self._reported]
        refused = refusals(fresh)
        self._incidents.open_all(
            self._flow, _KIND, [_refused(self._flow, plan) for plan in refused]
        )
        self._reported.update(refused)
        return fresh

    def _tell(self, refused: Mapping[str, TargetRefused]) -> None:
        problems = [
            ReplicationError(f"{refused[topic]}; the flow goes on without it", topic=topic)
            for topic in sorted(refused.keys() - self.topics.keys())
        ]
        self._incidents.open_all(self._flow, _KIND, problems)


def _refused(flow: str, plan: TopicPlan) -> ReplicationError:
    return ReplicationError(
        f"flow {flow} does not mirror topic {plan.topic}: {plan.reason}; exclude it with "
        "topics_exclude, or give it another name at the target",
        topic=plan.topic,
    )
