"""What landing does about a query that failed: the next one leaves out what it could not read, or
another one begins in its place, as often as that may help."""

import logging
from collections.abc import Collection, Mapping

from mirrorlake.errors import ReplicationError
from mirrorlake.landing.excluded import unstageable
from mirrorlake.landing.plan import LandingPlanner
from mirrorlake.landing.source_comparison import Planned
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.causes import cause_of, causes_of, places_in

logger = logging.getLogger(__name__)

#: How many queries in a row may begin anew, without a pause, that complete no batch.
BEGUN_ANEW = 10


class BrokenQueries:
    """The failed queries of the worker of this name."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._named_before: Collection[TopicAndPartition] = ()
        self._begun_anew = 0  # since a query completed a batch; with `--once`, in all

    def came_through(self, once: bool) -> None:
        """Reset the count: a query completed a batch. A run with `once` counts all queries."""
        self._named_before = ()
        if not once:
            self._begun_anew = 0

    def failed(
        self,
        error: Exception,
        planned: Planned,
        planner: LandingPlanner,
        covered: Mapping[TopicAndPartition, int],
    ) -> None:
        """Leave out of the next query what this one could not read: because it is gone, as a new
        plan finds out, or because the error names it, twice in a row. Raise any other error."""
        now = planner.plan(covered, planned.current_generations)
        if now.explains(planned.plan, covered):
            self.begin_anew(cause_of(error), has_news=bool(now.losses))
            return
        refused = unstageable(error)
        if not refused:
            named = places_in(causes_of(error), planned.plan.starts.keys())
            refused = {key: why for key, why in named.items() if key in self._named_before}
            self._named_before = named.keys()
        if not refused:
            raise error
        planner.refuse(refused)

    def begin_anew(self, why: str, has_news: bool = False) -> None:
        """Go on with another query, unless that has failed again and again: then it is a failure
        like any other. `has_news`: operators see why, and what is lost waits for them, so there is
        less to read. Raises ReplicationError."""
        self._begun_anew += not has_news
        if self._begun_anew > BEGUN_ANEW:
            raise ReplicationError(
                f"{self._worker} was begun anew {BEGUN_ANEW} times, and could not go on each "
                f"time ({why}); look for topics, or leaders of partitions, that come and go at the "
                "cluster, and for who else stops queries of its session"
            )
        log = logger.info if has_news else logger.warning
        log("%s is begun anew: %s", self._worker, why)
