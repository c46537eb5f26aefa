"""Calls in other threads: one that is not waited for, and many side by side."""

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")
Subject = TypeVar("Subject")


def in_thread(name: str, call: Callable[[], Answer]) -> Future[Answer]:
    """Begin a call in a thread of this name; the future has what it returns, or raises. It keeps no
    process from ending: what is not waited for any more is left behind there."""
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is asked for
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def side_by_side(
    call: Callable[[Subject], Answer], subjects: Collection[Subject], most: int = 8
) -> list[Answer]:
    """What a call returns of each, in their order, `most` at a time. Raises what one raises."""
    if len(subjects) < 2:
        return [call(subject) for subject in subjects]
    with ThreadPoolExecutor(min(most, len(subjects))) as pool:
        return list(pool.map(call, subjects))
