"""A question to a cluster that may not answer, asked in the background."""

from collections.abc import Callable
from concurrent.futures import TimeoutError as TimeIsUp
from typing import Generic

from mirrorlake.errors import text_of
from mirrorlake.threads import Answer, in_thread


class Question(Generic[Answer]):
    """Asks at once in its own thread, which is abandoned if the cluster does not answer in time."""

    def __init__(self, name: str, ask: Callable[[], Answer], silence: str) -> None:
        """`name` is the thread's; `silence` is the text for a missing answer."""
        self._answer, self._silence = in_thread(name, ask), silence

    def answer(self, seconds: float) -> tuple[Answer | None, str]:
        """The answer, if it arrives within so many seconds; else None and the reason."""
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
