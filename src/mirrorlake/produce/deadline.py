"""Calls into librdkafka that may outlive their timeout.

`send_offsets_to_transaction` does (librdkafka 2.16, issues 5456 and 5511): if the group's
coordinator is lost meanwhile, only a change of state of another broker wakes it up. A worker would
hold a core, and its partitions, for good.
"""

from collections.abc import Callable
from concurrent.futures import TimeoutError as TimeIsUp
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.threads import in_thread

#: How long a call may exceed its own timeout before it is given up, seconds.
GRACE_SECONDS = 2.0


def within(seconds: float, call: Callable[[float], object], what: str) -> None:
    """Run a call that should take up to `seconds`; raise its error.

    Raises KafkaException (`_TIMED_OUT`) if it does not return. It may still take effect then, or
    hang on in its thread: its client has to be left alone, and fenced.
    """
    try:
        error = in_thread(what, partial(call, seconds)).exception(seconds + GRACE_SECONDS)
    except TimeIsUp:
        text = f"{what} did not return within {seconds:.0f} s"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text)) from None
    if error is not None:
        raise error
