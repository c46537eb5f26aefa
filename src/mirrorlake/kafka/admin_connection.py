"""A cluster's admin client, renewed with its secrets; its errors tell silence from refusal."""

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable, TopologyError
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.quick_admin import QuickAdmin
from mirrorlake.kafka.refusals import is_refusal, reason_of, refusal_text
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.native.layouts import Layout, TopicLayout

logger = logging.getLogger(__name__)

#: How long a cluster may take to answer before it counts as unreachable, seconds.
ANSWER_SECONDS = 15.0
#: The same if no address accepts a connection, and none has since this process began: the cluster
#: is gone, or the address is wrong.
SILENT_SECONDS = 6.0


class Client:
    """An admin client with its settings, and the last errors of its cluster."""

    def __init__(self, alias: str, settings: Settings) -> None:
        self.settings = settings
        self.refusal: KafkaError | None = None
        self.last: KafkaError | None = None
        self.refused = threading.Event()
        self.all_down = False
        try:
            self.client = QuickAdmin(settings, error_cb=self.on_error, logger=logger)
        except KafkaException as error:
            raise TopologyError(
                f"the settings of cluster {alias} cannot be used ({reason_of(error.args[0])}); "
                "check its security block and its client settings"
            ) from None

    def on_error(self, error: KafkaError) -> None:
        """Note an error of a broker, or of the connection; called by librdkafka."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.all_down = True
        else:
            self.last = error
        if is_refusal(error):
            self.refusal = error
            self.refused.set()


class AdminConnection:
    """A client, replaced when its secrets were rotated; `current` is the one of the last call.

    Live settings are checked again after a refusal and from time to time.
    """

    def __init__(self, alias: str, live: LiveSettings[str | int | bool]) -> None:
        self.alias = alias
        self.address = str(live.now["bootstrap.servers"])
        self.current = Client(alias, live.now)
        #: Partitions whose leaders did not answer the last query of offsets; replaced as a whole,
        #: by any thread.
        self.silent: frozenset[tuple[str, int]] = frozenset()
        #: The cluster's metadata by its last answer.
        self.known: Layout | None = None
        self._live = live
        self._use = threading.Lock()
        self._answered = False

    def connected(self) -> Client:
        """The client to use now. Get it for each call, since another may replace it."""
        with self._use:
            self.current.client.poll(0)
            refused = self.current.refused.is_set()
            if self._live.renewed(refused):
                self.current = Client(self.alias, self._live.now)
            return self.current

    def metadata(self) -> Layout:
        """Cluster metadata; with many topics the same object as long as nothing changes. Queried in
        short steps, so that a refused login is reported at once and not after the timeout.

        An answer cancels earlier refusals: one of several brokers may refuse, or one did while its
        certificate was replaced. So a cluster that answered before gets the full time again.
        """
        step = 2.0
        waited = 0.0
        current = self.connected()
        describer = current.client.of_many("metadata", len(self.topics_known()))
        if describer is not None:
            with suppress(KafkaException):  # the other client reports the reason
                return self._heard(current, describer.layout(step))
        while True:
            try:
                metadata = current.client.list_topics(timeout=step)
            except KafkaException as error:
                current.client.poll(0)
                waited += step
                patience = (
                    SILENT_SECONDS if current.all_down and not self._answered else ANSWER_SECONDS
                )
                refused_at_once = current.refused.is_set() and not self._answered
                if refused_at_once or waited >= patience:
                    raise self.unanswered(current, error, waited) from error
            else:
                return self._heard(current, _layout_of(metadata))

    def _heard(self, current: Client, layout: Layout) -> Layout:
        """Note that a broker has answered."""
        current.refusal = current.last = None
        current.refused.clear()
        current.all_down = False
        self._answered = True
        self.known = layout
        return layout

    def topics_known(self) -> Mapping[str, TopicLayout]:
        """Topics by the cluster's last answer."""
        return {} if self.known is None else self.known.topics

    def unanswered(
        self, current: Client, error: KafkaException, waited: float
    ) -> ClusterUnreachable | AuthenticationFailed:
        """Why no broker answers, as an error to raise."""
        if current.refusal is not None:
            why = refusal_text(current.refusal, current.settings)
            return AuthenticationFailed(
                f"cluster {self.alias} at {self.address} cannot be used: {why}", alias=self.alias
            )
        return ClusterUnreachable(
            f"cluster {self.alias} does not answer at {self.address} within {waited:.0f} s "
            f"({reason_of(current.last or error.args[0])}); check bootstrap_servers, and that the "
            "brokers run",
            alias=self.alias,
        )


def _layout_of(metadata: ClusterMetadata) -> Layout:
    return Layout(
        str(metadata.cluster_id),
        {number: (broker.host, broker.port) for number, broker in metadata.brokers.items()},
        {
            name: TopicLayout(
                0 if topic.error is None else topic.error.code(),
                {number: each.leader for number, each in topic.partitions.items()},
                {number: tuple(each.replicas) for number, each in topic.partitions.items()},
            )
            for name, topic in metadata.topics.items()
        },
    )
