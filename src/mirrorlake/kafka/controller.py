"""Requests that librdkafka sends to a cluster's controller, while one of the brokers is frozen.

A KRaft cluster names any of its brokers as its controller, a different one in each answer, since
each forwards requests to the controller (KIP-590). That may be a broker that does not answer and is
not yet known to be away: for `broker.session.timeout.ms`, 9 s by default.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.quick_admin import QuickAdmin

#: How long a named broker may take before another one is tried, for each try: together longer than
#: a cluster takes to notice that one is away.
_SECONDS = (5.0, 5.0)
Asked = TypeVar("Asked")


def ask_controller(
    client: QuickAdmin, ask: Callable[[float], Mapping[Asked, "Future[Any]"]]
) -> Mapping[Asked, "Future[Any]"]:
    """The result of `ask`, which gets the seconds to wait for an answer; called again if the named
    broker is silent and others are not. The futures may not be done."""
    for seconds in _SECONDS:
        asked = ask(seconds)
        if not any(_is_silent(future) for future in asked.values()):
            return asked
        try:
            client.learn_leaders(seconds)  # the metadata names another one
        except KafkaException:
            return asked  # no broker answers, as the futures report
    return ask(ANSWER_SECONDS)


def _is_silent(future: "Future[Any]") -> bool:
    error = future.exception()
    codes = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    return isinstance(error, KafkaException) and error.args[0].code() in codes
