"""Changes that do not last: a cluster refuses them, or another party undoes them repeatedly."""

import time
from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

#: How long a refused change waits before it is tried again, seconds: policies and rights change.
RETRY_REFUSED_SECONDS = 600.0
#: How often a change is made within that time before another party is assumed to undo it.
CONTESTED_TIMES = 3


class RefusedChanges:
    """Remembers refusals by any key, such as a change, for the life of the process."""

    def __init__(self, retry_seconds: float = RETRY_REFUSED_SECONDS) -> None:
        self._retry = retry_seconds
        self._known: dict[Hashable, tuple[str, float]] = {}
        self._by_reason: dict[str, set[Hashable]] = {}

    def waits(self, key: Hashable) -> bool:
        """Whether this was refused a short while ago, so that it is not worth trying."""
        return key in self._known and time.monotonic() < self._known[key][1]

    def due(self, keys: Iterable[Key]) -> list[Key]:
        """Keys to try now: those never refused, and after the retry time one for each reason."""
        fresh: list[Key] = []
        again: dict[str, Key] = {}
        for key in keys:
            if key not in self._known:
                fresh.append(key)
            elif not self.waits(key):
                again.setdefault(self._known[key][0], key)
        return [*fresh, *again.values()]

    def accepted(self, key: Hashable) -> None:
        """Forget a refusal, and all for the same reason: they are worth trying."""
        if key in self._known:
            for other in self._by_reason.pop(self._known[key][0]):
                del self._known[other]

    def is_news(self, key: Hashable, error: str) -> bool:
        """Remember a refusal; False if the same was reported before."""
        known = self._known.get(key)
        if known is not None:
            self._by_reason[known[0]].discard(key)
        self._known[key] = (error, time.monotonic() + self._retry)
        self._by_reason.setdefault(error, set()).add(key)
        return known is None or known[0] != error

    def standing(self, keys: Iterable[Hashable]) -> list[str]:
        """The errors of those keys that were refused."""
        return [self._known[key][0] for key in keys if key in self._known]

    def keep(self, keys: Collection[Hashable]) -> None:
        """Forget all but these keys: one that comes back later is reported again."""
        self._known = {key: known for key, known in self._known.items() if key in keys}
        self._by_reason = {}
        for key, (reason, _) in self._known.items():
            self._by_reason.setdefault(reason, set()).add(key)


class Contests:
    """Counts how often the same change was made recently.

    A tool, replicator or flow into the same topic may undo it, and both would go on for ever.
    """

    def __init__(self, seconds: float = RETRY_REFUSED_SECONDS) -> None:
        self._seconds = seconds
        #: The times of each change; the change that was made last is at the end.
        self._made: dict[Hashable, list[float]] = {}

    def made(self, key: Hashable) -> None:
        """Count a change that was made."""
        now = time.monotonic()
        while self._made:
            oldest = next(iter(self._made))
            if self._made[oldest][-1] > now - self._seconds:
                break
            del self._made[oldest]
        self._made[key] = [*self._made.pop(key, ()), now]

    def is_contested(self, key: Hashable) -> bool:
        """Whether the change was made so often that it is not worth making again now."""
        oldest = time.monotonic() - self._seconds
        return sum(at > oldest for at in self._made.get(key, ())) >= CONTESTED_TIMES
