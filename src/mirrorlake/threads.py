"""Calls in other threads: one in the background, and many in parallel."""

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")
Subject = TypeVar("Subject")


def in_thread(name: str, call: Callable[[], Answer]) -> Future[Answer]:
    """Start a call in a thread of this name; the future gets its result or exception. The thread is
    a daemon: it does not keep the process from ending."""
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised by the future's `result`
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def side_by_side(
    call: Callable[[Subject], Answer], subjects: Collection[Subject], most: int = 8
) -> list[Answer]:
    """The results of `call` per subject, in order, `most` at a time. Raises what a call raises."""
    if len(subjects) < 2:
        return [call(subject) for subject in subjects]
    with ThreadPoolExecutor(min(most, len(subjects))) as pool:
        return list(pool.map(call, subjects))
