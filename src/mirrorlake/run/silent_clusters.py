"""Clusters that did not answer when flows were judged (`checks/preflight.py`): no rule has looked
at what these flows do there."""

from collections.abc import Collection
from contextlib import suppress

from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.connections import Connections
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Worker

#: How long it takes until they are asked again, seconds.
ASK_SECONDS = 10.0


def asking(connections: Connections, aliases: Collection[str]) -> Worker:
    """A thread, to be started, that ends once one of some clusters answers: a caller who waited for
    it would do nothing else for seconds."""

    def turn() -> float | None:
        for alias in aliases:
            with suppress(ClusterUnusable):
                connections.admin(alias).cluster_id()
                return None
        return ASK_SECONDS

    return Worker("asking clusters that are away", turn, in_words=as_mirrorlake_error)
