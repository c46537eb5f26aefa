"""Named points at which a test can kill a process, as hard as a power cut would.

`MIRRORLAKE_CRASH=point[:driver]` with `MIRRORLAKE_CRASH_ONCE=FILE`: the first process that reaches
the point makes the file and sends SIGKILL, or MIRRORLAKE_CRASH_SIGNAL, to itself or to the driver.
Unset, as it always is outside tests, `reached` does nothing. A name that is none of these is an
error wherever the first point is reached: a test that kills nothing proves nothing.
"""

import os
import signal
from pathlib import Path

#: The points on the way of records, in the order in which a record meets them.
POINTS = (
    # a part of a landed batch is written into a file that nothing refers to
    "file-written",
    # the driver has a small batch, or what tasks wrote of a larger one, and nothing of it is
    # committed
    "taken",
    "landed",  # a batch is in `records`, the query's checkpoint does not know yet
    "planned",  # a batch is planned, nothing has been produced
    "mid-transaction",  # records are sent, the Kafka transaction is open
    "kafka-committed",  # a Kafka transaction is committed, no map row is
    "produced",  # all transactions of a batch are committed, no map row is
    "mapped",  # the map rows are committed, the latency rows are not
)
#: Points on the way of records that the target refuses.
PARK_POINTS = (
    "refused",  # a batch has found which, nothing is in `parked`
    "parked",  # they are in `parked`, the flow has not gone on behind them
)
#: Points of `forget`.
FORGET_POINTS = (
    "forget-noted",  # what goes is in `forgotten`, nothing is deleted
    "forget-deleted",  # it is deleted, `forgotten` does not say so yet
)
#: Points of `replay` and `restore`, beside those of records.
RESEND_POINTS = (
    "resend-begun",  # what is sent is noted in `changes`, nothing was sent
    "resend-sent",  # all is at the target and in the map, the end is not noted
    "resend-told",  # nor is it when the answer is given
)
#: Points of landing where a session commits.
SESSION_POINTS = (
    "reported",  # Spark reports a batch, what its tasks have read is not compared yet
    "gap-noted",  # a hole in the stage is an incident, nothing is read again
)
#: Points of groups, of `verify`, and of another number of `produce_tasks`.
BESIDE_POINTS = (
    "checkpointed",  # positions are translated and in `checkpoints`
    "group-moved",  # some groups stand where they were to be moved, others do not
    "compared",  # partitions are compared, `audits` does not say so
    "audited",  # it does
    "token-noted",  # the target has a newer fencing token, older producers are not fenced yet
)
ALL_POINTS = frozenset(
    POINTS + PARK_POINTS + FORGET_POINTS + RESEND_POINTS + SESSION_POINTS + BESIDE_POINTS
)


def reached(point: str) -> None:
    """Die here if a test asked for it. Raises ValueError where it asks for a point that is not."""
    wanted = os.environ.get("MIRRORLAKE_CRASH")
    if not wanted:
        return
    name, _, victim = wanted.partition(":")
    if name not in ALL_POINTS:
        raise ValueError(f"MIRRORLAKE_CRASH names {name}, which is no point: {sorted(ALL_POINTS)}")
    if name != point:
        return
    try:
        Path(os.environ["MIRRORLAKE_CRASH_ONCE"]).touch(exist_ok=False)
    except FileExistsError:
        return
    driver = int(os.environ.get("MIRRORLAKE_DRIVER_PID", "0"))
    how = signal.Signals[os.environ.get("MIRRORLAKE_CRASH_SIGNAL", "SIGKILL")]
    os.kill(driver if victim == "driver" and driver else os.getpid(), how)
