"""Chooses the producer: the native one or, if that cannot be used, confluent-kafka's own."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, ThrottleEvent

from mirrorlake.native.producer import Producer
from mirrorlake.native.selfcheck import usable
from mirrorlake.produce.python_producer import PythonProducer
from mirrorlake.produce.record_producer import RecordProducer

logger = logging.getLogger(__name__)


def new_producer(
    settings: Mapping[str, Any], throttle: Callable[[ThrottleEvent], None], group: Consumer
) -> RecordProducer:
    """A producer with librdkafka's settings; `group` is a client of the group of its positions."""
    if usable("produced"):
        return Producer(settings, throttle, logger)
    return PythonProducer(settings, throttle, logger, group)
