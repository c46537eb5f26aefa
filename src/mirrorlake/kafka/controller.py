"""Questions that librdkafka asks of a cluster's controller, while one of the brokers is frozen.

A KRaft cluster names any of its brokers as its controller, another one in each answer, since each
takes what is for the controller (KIP-590). It may so be one that does not answer, and is not known
to be away yet: for `broker.session.timeout.ms`, 9 s by default.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.quick_admin import QuickAdmin

#: How long a broker that was named has before another one is asked for, each time: together longer
#: than a cluster takes to know that one is away.
_SECONDS = (5.0, 5.0)
Asked = TypeVar("Asked")


def ask_controller(
    client: QuickAdmin, ask: Callable[[float], Mapping[Asked, "Future[Any]"]]
) -> Mapping[Asked, "Future[Any]"]:
    """What `ask` returns, given seconds to wait for an answer; asked again where the broker that
    was named is silent, and others are not. The futures may not be done."""
    for seconds in _SECONDS:
        asked = ask(seconds)
        if not any(_is_silent(future) for future in asked.values()):
            return asked
        try:
            client.learn_leaders(seconds)  # what names another one
        except KafkaException:
            return asked  # no broker answers, as the futures say
    return ask(ANSWER_SECONDS)


def _is_silent(future: "Future[Any]") -> bool:
    error = future.exception()
    codes = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    return isinstance(error, KafkaException) and error.args[0].code() in codes
