"""What follows from a failure of a flow: whether it is retried, and which incident it opens."""

import logging

from mirrorlake.errors import (
    CountDiffers,
    Fenced,
    InputError,
    LeaseTaken,
    MapError,
    MirrorlakeError,
    ReplicationError,
)
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lease import AnyLease
from mirrorlake.spark.causes import message_of
from mirrorlake.worker import PAUSES, Failure

logger = logging.getLogger(__name__)

#: After how many failures in a row an incident is opened: the first mostly pass within seconds.
QUIET_FAILURES = 2
#: How many times in a row the records read may differ from the stage's index before the flow ends.
COUNT_TRIES = 3


class FlowFailures:
    """The failures of one flow; `once` marks a run with `--once`."""

    def __init__(self, flow: str, once: bool, lease: AnyLease, incidents: Incidents) -> None:
        self._flow, self._once, self._lease, self._incidents = flow, once, lease, incidents
        self._miscounts = 0  # since the last batch

    def batch_done(self) -> None:
        """Note a completed batch: what was read of the stage is what its index names."""
        self._miscounts = 0

    def ends(self, error: BaseException, problem: MirrorlakeError, attempt: int) -> bool:
        """Whether a failure ends the flow: only an operator can remedy it. One that may pass by
        itself is retried for ever by a continuous run, and a few times by `--once`."""
        if isinstance(problem, CountDiffers):
            self._miscounts += 1
            return self._miscounts >= COUNT_TRIES
        over = self._once and (isinstance(error, InputError) or attempt >= len(PAUSES))
        over = over or self._taken_over(problem)
        return over or isinstance(error, ReplicationError) or isinstance(problem, MapError)

    def _taken_over(self, problem: MirrorlakeError) -> bool:
        """Whether another process runs the flow, and this one stands by for it."""
        lease = self._lease
        return lease.stands_by and (not lease.held or isinstance(problem, Fenced))

    def report(self, failure: Failure) -> None:
        """Open an incident for an error that ended the flow, or that it keeps failing with."""
        problem, incidents = failure.problem, self._incidents
        if self._taken_over(problem):
            # the flow is healthy, or another process sees what it lacks
            logger.warning("flow %s: %s", self._flow, message_of(failure.error))
            return
        if failure.ends:
            logger.error("%s", problem)
            if not isinstance(failure.error, LeaseTaken):
                # a lease that is taken means that another process runs the flow
                incidents.open(self._flow, problem.incident_kind, problem)
            return
        logger.warning("flow %s: %s; trying again", self._flow, message_of(failure.error))
        if failure.attempt >= QUIET_FAILURES:
            kind = "cluster_unreachable" if isinstance(failure.error, InputError) else "flow_waits"
            incidents.open(self._flow, kind, problem)
