"""An admin client that is quick where a cluster has many topics."""

import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from mirrorlake.native.describer import Describer, Description
from mirrorlake.native.library import NativeUnavailable

#: From how many topics on a separate client, with its own connections, describes them; and after
#: how many questions of a kind: a command asks once or twice.
MANY_TOPICS, FEW_QUESTIONS = 20, 2


class QuickAdmin(AdminClient):  # type: ignore[misc]
    """confluent-kafka's client; of many topics `describe_topics` has `Description`'s fields."""

    def __init__(self, settings: Mapping[str, Any], **others: Any) -> None:
        """`others` are confluent-kafka's own arguments beside librdkafka's settings."""
        super().__init__({**settings, **others})
        self._settings = settings
        self._asked, self._counts = Counter[str](), threading.Lock()
        self._describer: Describer | None = None

    def describe_topics(
        self,
        topics: TopicCollection,
        *,
        include_authorized_operations: bool = False,
        request_timeout: float,
    ) -> dict[str, "Future[TopicDescription | Description]"]:
        """See confluent-kafka; the returned futures may be done already."""
        rights = include_authorized_operations
        describer = self.of_many("topics", len(topics.topic_names))
        if describer is None:
            return super().describe_topics(  # type: ignore[no-any-return]
                topics, include_authorized_operations=rights, request_timeout=request_timeout
            )
        try:
            answers = describer.describe(topics.topic_names, rights, request_timeout)
        except KafkaException as error:
            answers = dict.fromkeys(topics.topic_names, error.args[0])
        return {name: _done(answer) for name, answer in answers.items()}

    def of_many(self, what: str, count: int) -> Describer | None:
        """The client to query about many topics or partitions; None as long as only few were
        queried, or there were few questions of this kind, or if the compiled part cannot be used.

        Once it exists, it answers questions about few as well: each client learns leaders by
        itself, and one that is seldom used keeps dead leaders.
        """
        with self._counts:
            if self._describer is not None and self._describer.over:
                self._describer = None  # its thread ended; another is made by the same rule
                self._asked.clear()
            if self._describer is None and count >= MANY_TOPICS:
                self._asked[what] += 1
                if self._asked[what] == FEW_QUESTIONS + 1:
                    with suppress(NativeUnavailable):
                        self._describer = Describer(self._settings)
            return self._describer

    def learn_leaders(self, seconds: float) -> None:
        """Let questions go to present leaders and controller. Raises KafkaException if unknown."""
        if self._describer is not None:
            self._describer.layout(seconds)
        self.list_topics(timeout=seconds)


def _done(answer: Description | KafkaError) -> "Future[TopicDescription | Description]":
    future: Future[TopicDescription | Description] = Future()
    if isinstance(answer, KafkaError):
        future.set_exception(KafkaException(answer))
    else:
        future.set_result(answer)
    return future
