"""A question to a cluster, asked while other things are done, of one that may not answer."""

from collections.abc import Callable
from concurrent.futures import TimeoutError as TimeIsUp
from typing import Generic

from mirrorlake.errors import text_of
from mirrorlake.threads import Answer, in_thread


class Question(Generic[Answer]):
    """Asked in a thread of its own from now on, which is left behind where the cluster does not
    answer in time."""

    def __init__(self, name: str, ask: Callable[[], Answer], silence: str) -> None:
        """`name` is the thread's; `silence` says that there was no answer yet."""
        self._answer, self._silence = in_thread(name, ask), silence

    def answer(self, seconds: float) -> tuple[Answer | None, str]:
        """The answer, waited for so long at most; or None and why there is none."""
        try:
            return self._answer.result(max(0.0, seconds)), ""
        except TimeIsUp:
            return None, self._silence
        except Exception as error:  # noqa: BLE001 - whatever it is, the other clusters' answers count
            return None, text_of(error)

    @property
    def over(self) -> bool:
        """Whether it was answered, or failed."""
        return self._answer.done()
