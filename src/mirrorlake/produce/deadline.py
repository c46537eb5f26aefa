"""Calls into librdkafka that may outlive the timeout that they are given.

`send_offsets_to_transaction` does (librdkafka 2.16, issues 5456 and 5511): once the group's
coordinator is lost under it, nothing but another broker's change of state wakes it up. A worker
would hold a core, and its partitions, for good.
"""

from collections.abc import Callable
from concurrent.futures import TimeoutError as TimeIsUp
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.threads import in_thread

#: What a call gets beyond its own timeout before it is given up, seconds.
GRACE_SECONDS = 2.0


def within(seconds: float, call: Callable[[float], object], what: str) -> None:
    """Run a call that is to take up to `seconds`; raise what it raises.

    Raises KafkaException (`_TIMED_OUT`) when it does not return. It may still happen then, or hang
    on in its thread: the client that made it has to be left alone, and fenced.
    """
    try:
        error = in_thread(what, partial(call, seconds)).exception(seconds + GRACE_SECONDS)
    except TimeIsUp:
        text = f"{what} did not return within {seconds:.0f} s"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text)) from None
    if error is not None:
        raise error
