"""A call in a thread of its own that keeps no process from ending: what is not waited for any more
is left behind there."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Answer = TypeVar("Answer")


def in_thread(name: str, call: Callable[[], Answer]) -> Future[Answer]:
    """Begin a call in a thread of this name; the future has what it returns, or raises."""
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is asked for
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
