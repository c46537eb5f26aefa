"""What becomes of a flow that failed: whether it is tried again, and what operators hear of it."""

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

#: After how many failures in a row an operator hears of it: the first ones mostly pass within some
#: seconds.
QUIET_FAILURES = 2
#: How often in a row what is read of the stage is compared with its index before the flow ends.
COUNT_TRIES = 3


class FlowFailures:
    """The failures of one flow; `once` is a run with an end."""

    def __init__(self, flow: str, once: bool, lease: AnyLease, incidents: Incidents) -> None:
        self._flow, self._once, self._lease, self._incidents = flow, once, lease, incidents
        self._miscounts = 0  # since the last batch

    def batch_done(self) -> None:
        """A batch came through: what was read of the stage was what its index names."""
        self._miscounts = 0

    def ends(self, error: BaseException, problem: MirrorlakeError, attempt: int) -> bool:
        """Whether a failure ends the flow: what only an operator can fix does. What can pass by
        itself is tried for ever by a continuous run, and some times by `--once`."""
        if isinstance(problem, CountDiffers):
            self._miscounts += 1
            return self._miscounts >= COUNT_TRIES
        over = self._once and (isinstance(error, InputError) or attempt >= len(PAUSES))
        over = over or self._taken_over(problem)
        return over or isinstance(error, ReplicationError) or isinstance(problem, MapError)

    def _taken_over(self, problem: MirrorlakeError) -> bool:
        """Whether another process does it, for which this one stands by."""
        lease = self._lease
        return lease.stands_by and (not lease.held or isinstance(problem, Fenced))

    def report(self, failure: Failure) -> None:
        """Tell operators what ended the flow, or what it cannot come through for now."""
        problem, incidents = failure.problem, self._incidents
        if self._taken_over(problem):
            # the flow is healthy, or another process sees what it lacks
            logger.warning("flow %s: %s", self._flow, message_of(failure.error))
            return
        if failure.ends:
            logger.error("%s", problem)
            if not isinstance(failure.error, LeaseTaken):
                # the flow is healthy: another process does it
                incidents.open(self._flow, problem.incident_kind, problem)
            return
        logger.warning("flow %s: %s; trying again", self._flow, message_of(failure.error))
        if failure.attempt >= QUIET_FAILURES:
            kind = "cluster_unreachable" if isinstance(failure.error, InputError) else "flow_waits"
            incidents.open(self._flow, kind, problem)
