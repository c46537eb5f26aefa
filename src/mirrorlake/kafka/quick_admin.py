"""An admin client that is quick where a cluster has many topics."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from mirrorlake.native.library import NativeUnavailable
from mirrorlake.native.topic_describer import Description, TopicDescriber

#: From how many topics on another client describes them, which has connections of its own; and the
#: questions before that: a command asks once or twice.
MANY_TOPICS, FEW_QUESTIONS = 20, 2


class QuickAdmin(AdminClient):  # type: ignore[misc]
    """confluent-kafka's, whose `describe_topics` says no more than `Description` has where there
    are many topics."""

    def __init__(self, settings: Mapping[str, Any], **others: Any) -> None:
        """`others` are what confluent-kafka takes beside librdkafka's settings."""
        super().__init__({**settings, **others})
        self._settings = settings
        self._asked, self._counts = 0, threading.Lock()
        self._describer: TopicDescriber | None = None

    def describe_topics(
        self,
        topics: TopicCollection,
        *,
        include_authorized_operations: bool = False,
        request_timeout: float,
    ) -> dict[str, "Future[TopicDescription | Description]"]:
        """As confluent-kafka's; what it returns may be done."""
        rights = include_authorized_operations
        describer = self._made() if len(topics.topic_names) >= MANY_TOPICS else None
        if describer is None:
            return super().describe_topics(  # type: ignore[no-any-return]
                topics, include_authorized_operations=rights, request_timeout=request_timeout
            )
        try:
            answers = describer.describe(topics.topic_names, rights, request_timeout)
        except KafkaException as error:
            answers = dict.fromkeys(topics.topic_names, error.args[0])
        return {name: _done(answer) for name, answer in answers.items()}

    def _made(self) -> TopicDescriber | None:
        """Who describes many topics; None as long as few questions were asked, or where the
        compiled part cannot be used."""
        with self._counts:
            self._asked += 1
            if self._asked == FEW_QUESTIONS + 1:
                with suppress(NativeUnavailable):
                    self._describer = TopicDescriber(self._settings)
            return self._describer


def _done(answer: Description | KafkaError) -> "Future[TopicDescription | Description]":
    future: Future[TopicDescription | Description] = Future()
    if isinstance(answer, KafkaError):
        future.set_exception(KafkaException(answer))
    else:
        future.set_result(answer)
    return future
