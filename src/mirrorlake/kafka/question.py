"""A question to a cluster, asked while other things are done, of one that may not answer."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from confluent_kafka import KafkaException

from mirrorlake.errors import MirrorlakeError

Answer = TypeVar("Answer")


class Question(Generic[Answer]):
    """Asked in a thread of its own from now on, which is left behind where the cluster does not
    answer in time."""

    def __init__(self, name: str, ask: Callable[[], Answer], silence: str) -> None:
        """`name` is the thread's; `silence` says that there was no answer yet."""
        self._ask = ask
        self._answer: Answer | None = None
        self._why = silence
        self._done = threading.Event()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def answer(self, seconds: float) -> tuple[Answer | None, str]:
        """The answer, waited for so long at most; or None and why there is none."""
        self._done.wait(max(0.0, seconds))
        return self._answer, self._why

    @property
    def over(self) -> bool:
        """Whether it was answered, or failed."""
        return self._done.is_set()

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except (MirrorlakeError, KafkaException) as error:
            self._why = str(error)
        finally:
            self._done.set()
