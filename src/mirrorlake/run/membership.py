"""Whether this process is the working one of its group, by what Kafka says of its membership. Pure.

A group of processes has a topic with one partition: the member that has it works. A process that
stood still (a signal, a paused machine) believes what it heard last, while Kafka may have given the
partition to another. So no news counts for longer than a session lasts, and an assignment only once
the coordinator has accepted a commit of it, which it refuses to a member that it has given up.
"""

from dataclasses import dataclass


@dataclass
class Membership:
    """One process in one group. Times are seconds of a clock that does not stand still with the
    process.

    Attributes:
        session_seconds: how long a member that has gone silent keeps its partition.
        joined: whether the group has assigned its partition since this process joined.
        has_partition: whether the group has assigned it to this process.
        confirmed: whether the coordinator has accepted a commit of it since.
        heard_at: when Kafka was last polled; None before the first time.
        tenure: rises with each assignment, to recognize a commit of an earlier one.
    """

    session_seconds: float
    joined: bool = False
    has_partition: bool = False
    confirmed: bool = False
    heard_at: float | None = None
    tenure: int = 0

    def works(self, now: float) -> bool:
        """Whether this process is the one that works."""
        return self.has_partition and self.confirmed and not self._stood_still(now)

    @property
    def to_confirm(self) -> bool:
        """Whether the coordinator has to confirm the assignment before this process works."""
        return self.has_partition and not self.confirmed

    def polled(self, now: float) -> None:
        """Note a poll. After a long pause, an assignment must be confirmed anew: it may be over."""
        if self._stood_still(now):
            self.confirmed = False
        self.heard_at = now

    def assigned(self, partition: bool) -> None:
        """Note that the group has assigned its partition: to this process or, without `partition`,
        nothing that this process did not have before."""
        self.joined = True
        if partition:
            self.has_partition, self.confirmed = True, False
            self.tenure += 1

    def confirm(self, tenure: int) -> None:
        """Note that the coordinator has accepted a commit that was made in `tenure`."""
        self.confirmed = self.has_partition and tenure == self.tenure

    def lost(self) -> None:
        """Forget the assignment: the group rebalances, the session is over, another process has the
        name, or this one left."""
        self.has_partition = self.confirmed = self.joined = False

    def _stood_still(self, now: float) -> bool:
        return self.heard_at is not None and now - self.heard_at > self.session_seconds
