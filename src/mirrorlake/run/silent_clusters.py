"""Clusters that did not answer when flows were judged (`checks/preflight.py`), as a whole or by
single leaders: no rule has looked at what these flows do there, or it is not known where they
begin."""

from collections.abc import Collection
from contextlib import suppress
from itertools import count

from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.connections import Connections
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Worker

#: How long it takes until they are asked again, seconds.
ASK_SECONDS = 10.0


def asking(connections: Connections, aliases: Collection[str]) -> Worker:
    """A thread, to be started, that ends once one of some clusters answers: a caller who waited for
    it would do nothing else for seconds."""

    turns = count()

    def turn() -> float | None:
        for alias in aliases if next(turns) else ():  # not before some time is over
            with suppress(ClusterUnusable):
                connections.admin(alias).cluster_id()
                return None
        return ASK_SECONDS

    return Worker("asking clusters that are away", turn, in_words=as_mirrorlake_error)
