"""Appends of many threads to one table, in as few commits as they come together.

A Delta commit takes longer than most of what it notes down, and the threads of many flows note
things down at the same time. The first idle caller writes for all, its own rows and those that come
meanwhile; each call returns, or raises, when its own rows are, or are not, in the table.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pyarrow as pa


class GroupCommit:
    """Appends to one table; `write` puts rows into it, in one commit."""

    def __init__(self, write: Callable[[pa.Table], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._waiting: list[tuple[pa.Table, Future[None]]] = []
        self._busy = False

    def append(self, rows: pa.Table) -> None:
        """Append rows. Raises what the commit that they were part of raised."""
        done: Future[None] = Future()
        with self._lock:
            self._waiting.append((rows, done))
            lead = not self._busy
            self._busy = True
        if lead:
            self._write_all()
        done.result()

    def _write_all(self) -> None:
        while True:
            with self._lock:
                group, self._waiting = self._waiting, []
                if not group:
                    self._busy = False
                    return
            try:
                self._write(
                    pa.concat_tables([rows for rows, _ in group], promote_options="default")
                )
            except BaseException as error:  # noqa: BLE001 - raised in each thread that waits
                for _, done in group:
                    done.set_exception(error)
            else:
                for _, done in group:
                    done.set_result(None)
