"""Who takes records to the target: the native producer, or, where it cannot be used,
confluent-kafka's own."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from confluent_kafka import Consumer, ThrottleEvent

from mirrorlake.native.producer import Producer
from mirrorlake.native.selfcheck import problem
from mirrorlake.produce.python_producer import PythonProducer
from mirrorlake.produce.record_producer import RecordProducer

logger = logging.getLogger(__name__)


def new_producer(
    settings: Mapping[str, Any], throttle: Callable[[ThrottleEvent], None], group: Consumer
) -> RecordProducer:
    """A producer with librdkafka's settings; `group` is a client of the group whose positions it
    commits."""
    why_not = problem()
    if why_not is None:
        return Producer(settings, throttle, logger)
    _say(why_not)
    return PythonProducer(settings, throttle, logger, group)


@cache
def _say(why_not: str) -> None:
    logger.warning(
        "records are produced one by one in Python, which is slower, because %s", why_not
    )
