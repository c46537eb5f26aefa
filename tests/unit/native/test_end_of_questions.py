"""The client that asks for offsets ends while an answer may arrive."""

import threading
from typing import Any

from mirrorlake.native.offset_asker import OffsetAsker


class Interrupted:
    """librdkafka's functions: an answer wakes the thread between the end's two steps."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.woken, self.given_back = threading.Event(), threading.Event()

    def queue_new(self, _client: int) -> int:
        return 1

    def queue_poll(self, _queue: int, _wait_ms: int) -> int:
        self.woken.wait(10)
        return 0

    def queue_yield(self, _queue: int) -> None:
        self.woken.set()
        self.given_back.wait(0.3)
        self.calls.append("wake up")

    def queue_destroy(self, _queue: int) -> None:
        self.calls.append("give the queue back")
        self.given_back.set()

    def destroy(self, _client: int) -> None:
        self.calls.append("give the client back")


def test_no_queue_is_woken_that_was_given_back() -> None:
    """It would end the process, with signal 11."""
    library: Any = Interrupted()
    asker = OffsetAsker(library, 7)
    asker.end()
    asker.thread.join(10)
    assert library.calls == ["wake up", "give the queue back", "give the client back"]
