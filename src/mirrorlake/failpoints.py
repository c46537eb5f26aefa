"""Named points at which a test can kill a process, as hard as a power cut would.

`MIRRORLAKE_CRASH=point[:driver]` with `MIRRORLAKE_CRASH_ONCE=FILE`: the first process that reaches
the point makes the file and sends SIGKILL, or MIRRORLAKE_CRASH_SIGNAL, to itself or to the driver.
Unset, as always outside tests, `reached` does nothing. An unknown name is an error as soon as any
point is reached: a test that kills nothing proves nothing.
"""

import os
import signal
from pathlib import Path

#: The points on the path of a record, in the order in which it passes them.
POINTS = (
    # part of a landed batch is in a file that no commit refers to
    "file-written",
    # the driver holds a small batch, or files that tasks wrote of a larger; nothing is committed
    "taken",
    "landed",  # a batch is in `records`, not yet in the query's checkpoint
    "planned",  # a batch is planned, nothing has been produced
    "mid-transaction",  # records are sent, the Kafka transaction is open
    "kafka-committed",  # a Kafka transaction is committed, no map row is
    "produced",  # all transactions of a batch are committed, no map row is
    "mapped",  # the map rows are committed, the latency rows are not
)
#: Points on the path of records that the target refuses.
PARK_POINTS = (
    "refused",  # a batch has found them, none is in `parked`
    "parked",  # they are in `parked`, the flow has not passed them
)
#: Points of `forget`.
FORGET_POINTS = (
    "forget-noted",  # the records to delete are in `forgotten`, none is deleted
    "forget-deleted",  # they are deleted, `forgotten` does not say so yet
)
#: Points of `replay` and `restore`, beside those of records.
RESEND_POINTS = (
    "resend-begun",  # the resend is noted in `changes`, nothing was sent
    "resend-sent",  # all records are at the target and in the map, the end is not noted
    "resend-told",  # the answer is given, the end is still not noted
)
#: Points of landing where a session commits.
SESSION_POINTS = (
    "reported",  # Spark reports a batch, the ranges that its tasks read are not compared yet
    "gap-noted",  # a hole in the stage is an incident, nothing is reread
)
#: Points of groups, of `verify`, and of another number of `produce_tasks`.
BESIDE_POINTS = (
    "checkpointed",  # positions are translated and in `checkpoints`
    "group-moved",  # some groups are moved, others are not
    "compared",  # partitions are compared, `audits` has no row of it
    "audited",  # `audits` has the rows
    "token-noted",  # the target has a newer fencing token, older producers are not fenced yet
)
ALL_POINTS = frozenset(
    POINTS + PARK_POINTS + FORGET_POINTS + RESEND_POINTS + SESSION_POINTS + BESIDE_POINTS
)


def reached(point: str) -> None:
    """Kill the process here if a test asked for it. Raises ValueError for an unknown point."""
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
