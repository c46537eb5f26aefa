"""Whether this process is the one of its group that works, by what Kafka says of its membership.
Pure.

A group of processes has a topic with one partition: who has it works, the others stand by. A
process that stood still (a signal, a paused machine, a thread that got no turn) believes what it
heard last, and Kafka may have given the partition to another one since: so nothing that was heard
counts for longer than a session lasts, and an assignment counts only once the group's coordinator
has taken a commit of it, which it refuses to a member that it has given up.
"""

from dataclasses import dataclass


@dataclass
class Membership:
    """One process in one group. Times are seconds of a clock that does not stand still with the
    process.

    Attributes:
        session_seconds: how long a member that is not heard of keeps what it has.
        joined: whether the group has dealt its partition since this process joined.
        has_partition: whether the group has dealt it to this process.
        confirmed: whether the coordinator has taken a commit of that since.
        heard_at: when Kafka was asked for news last; None before the first time.
        tenure: rises with each assignment, so that what began in an earlier one is known.
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
        """Whether the coordinator has to be asked before this process works."""
        return self.has_partition and not self.confirmed

    def polled(self, now: float) -> None:
        """Kafka was asked for news. After a time without, an assignment has to be confirmed anew:
        the news that it is over may be behind."""
        if self._stood_still(now):
            self.confirmed = False
        self.heard_at = now

    def assigned(self, partition: bool) -> None:
        """The group has dealt its partition: to this process, or, without `partition`, nothing that
        this process had not before."""
        self.joined = True
        if partition:
            self.has_partition, self.confirmed = True, False
            self.tenure += 1

    def confirm(self, tenure: int) -> None:
        """The coordinator has taken a commit that was made in some tenure."""
        self.confirmed = self.has_partition and tenure == self.tenure

    def lost(self) -> None:
        """What this process heard is over: the group deals anew, the session is over, another
        process has its name, or it left."""
        self.has_partition = self.confirmed = self.joined = False

    def _stood_still(self, now: float) -> bool:
        return self.heard_at is not None and now - self.heard_at > self.session_seconds
