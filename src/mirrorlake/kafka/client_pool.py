"""Clients that a process keeps between tasks. Spark reuses a Python worker for anything, so the
pool is bounded: superseded clients, and those unused for some time, are released."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Client = TypeVar("Client")

#: How long an unused client is kept, seconds: long enough for many batches, and short enough that a
#: replay or a rotated secret does not hold sockets and threads for long.
IDLE_SECONDS = 600.0


class ClientPool(Generic[Client]):
    """Clients by name. Of clients with the same owner, such as a source whose secret was rotated,
    the last one put stays.

    Args:
        close: releases a client; unnecessary if a client ends once nothing refers to it.
        idle_seconds: how long an unused client is kept.
        clock: returns seconds.
    """

    def __init__(
        self,
        close: Callable[[Client], None] = lambda _client: None,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._close, self._idle_seconds, self._clock = close, idle_seconds, clock
        self._known: dict[str, tuple[Client, str, float]] = {}
        self._use = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str) -> Client | None:
        """The client of a name, which stays here."""
        with self._use:
            entry = self._known.get(name)
            if entry is not None:
                self._known[name] = (*entry[:2], self._clock())
        self._sweep()
        return None if entry is None else entry[0]

    def take(self, name: str) -> Client | None:
        """Remove the client of a name from the pool; it is the caller's from now on."""
        with self._use:
            entry = self._known.pop(name, None)
        self._sweep()
        return None if entry is None else entry[0]

    def put(self, name: str, client: Client, belongs_to: str | None = None) -> None:
        """Keep a client; an earlier one of the same name or owner is released."""
        owner = name if belongs_to is None else belongs_to
        with self._use:
            before = [
                key for key, (_, other, _) in self._known.items() if key == name or other == owner
            ]
            over = [self._known.pop(key)[0] for key in before]
            self._known[name] = (client, owner, self._clock())
        for other in over:
            if other is not client:
                self._close(other)
        self._sweep()

    def _sweep(self) -> None:
        with self._use:
            due = self._clock() - self._idle_seconds
            idle = [name for name, (_, _, used) in self._known.items() if used < due]
            over = [self._known.pop(name)[0] for name in idle]
        for client in over:
            self._close(client)


#: From how many partitions on, at how many times as many as are in use, and after how many batches
#: in a row a client is outgrown.
MANY, TIMES, BATCHES = 500, 4, 30


class Breadth:
    """How many partitions a client knows, compared with those of its batches: at each answer
    librdkafka (2.16) iterates over all that a client has ever been used for."""

    def __init__(self) -> None:
        self._narrow = 0  # batches in a row

    def is_outgrown(self, known: int, used: int) -> bool:
        """Whether a new client would do less work for the next batch. Call it once per batch:
        `used` is its number of partitions, `known` that of all for which the client was used."""
        few = known > max(MANY, TIMES * used)
        self._narrow = self._narrow + 1 if few else 0
        return self._narrow > BATCHES
