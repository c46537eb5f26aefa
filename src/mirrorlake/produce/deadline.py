"""Calls into librdkafka that may outlive the timeout that they are given.

`send_offsets_to_transaction` does (librdkafka 2.16, issues 5456 and 5511): once the group's
coordinator is lost under it, nothing but another broker's change of state wakes it up. A worker
would hold a core, and its partitions, for good.
"""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread

from confluent_kafka import KafkaError, KafkaException

#: What a call gets beyond its own timeout before it is given up, seconds.
GRACE_SECONDS = 2.0


def within(seconds: float, call: Callable[[float], object], what: str) -> None:
    """Run a call that is to take up to `seconds`; raise what it raises.

    Raises KafkaException (`_TIMED_OUT`) when it does not return. It may still happen then, or hang
    on in its thread: the client that made it has to be left alone, and fenced.
    """
    answers: SimpleQueue[BaseException | None] = SimpleQueue()

    def run() -> None:
        try:
            call(seconds)
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            answers.put(error)
        else:
            answers.put(None)

    Thread(target=run, name=what, daemon=True).start()
    try:
        error = answers.get(timeout=seconds + GRACE_SECONDS)
    except Empty:
        text = f"{what} did not return within {seconds:.0f} s"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text)) from None
    if error is not None:
        raise error
