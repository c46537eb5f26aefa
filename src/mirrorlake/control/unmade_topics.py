"""Topics that a flow goes on without: the target would not make or grow them, or they must not be
mirrored."""

from collections.abc import Callable, Collection, Mapping, Sequence

from mirrorlake.control.topic_plan import TopicPlan, refusals
from mirrorlake.errors import ReplicationError, TargetRefused
from mirrorlake.lake.incidents import Incidents

_KIND = "topic_refused"


class UnmadeTopics:
    """The unmade topics of one flow, each reported once. `topics` are source topics that the target
    refused, with its answer; each refresh tries them again, also those that the source has no
    more. `caught_up` is whether the flow has come to the end of the stage: it has tried then all
    that an earlier process may have reported, except for topics that it does not need any more.
    `selects` says whether the flow mirrors a topic."""

    def __init__(self, flow: str, incidents: Incidents, selects: Callable[[str], bool]) -> None:
        self.topics: dict[str, TargetRefused] = {}
        self.caught_up = False
        self._flow = flow
        self._incidents, self._selects = incidents, selects
        self._begins = True  # an earlier process may have had another selection
        self._still: set[str] | None = None  # None until the first refresh
        #: Other topics may have open incidents of an earlier process, until these are `_looked_at`.
        self._tried: set[str] = set()
        self._looked_at = False
        self._reported: set[TopicPlan] = set()

    def replace(
        self,
        refused: Mapping[str, TargetRefused],
        still: Collection[str],
        tried: Collection[str] = (),
    ) -> None:
        """Set all refusals of a refresh; close incidents about topics other than `still`: those
        that stood, and those that it `tried` for the first time."""
        self._tell(refused)
        stood = {*(self._still or ()), *self.topics, *set(tried).difference(self._tried)}
        self._close(stood.difference(still))
        self._still = set(still)
        self._close_others(still)
        self._tried.update(tried)
        self.topics = dict(sorted(refused.items()))

    def flow_ends(self, denied: Collection[str]) -> None:
        """Close what nothing tries any more; `denied` topics stand for another reason."""
        if self._still is not None:
            self._close_others({*denied, *self._still, *self.topics})

    def _close_others(self, still: Collection[str]) -> None:
        """Close incidents of an earlier process about topics that nothing has tried."""
        if self.caught_up and not self._looked_at:
            self._incidents.close_except(self._flow, _KIND, still)
            self._looked_at = True

    def _close(self, over: Collection[str]) -> None:
        """Close incidents about topics, and first those about topics that are not selected now."""
        if over or self._begins:
            about, begins = (self._flow, _KIND), self._begins
            self._incidents.close(
                lambda key: (
                    key[:2] == about
                    and (key.topic in over or begins and not self._selects(key.topic or ""))
                )
            )
            self._begins = False

    def add(self, refused: Mapping[str, TargetRefused], made: Collection[str] = ()) -> None:
        """Add refusals since the last refresh; topics that were `made` are refused no more."""
        self._tell(refused)
        over = self.topics.keys() & {*made}
        self._close(over)
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
