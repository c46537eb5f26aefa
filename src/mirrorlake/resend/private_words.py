"""Predicates of private replays, which are in no table: what picks a person's records may be the
person's own data.

While such a replay has not ended, a file beside the lake's checkpoints has the SHA-256 of its
predicate, so that the same command goes on with it and another one does not; the file goes when the
replay ends.
"""

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

from mirrorlake.errors import InputError
from mirrorlake.lake.place import FolderPlace
from mirrorlake.resend.note import Resend


class PrivateWords:
    """The files of a lake's private replays, in the folder of its checkpoints."""

    def __init__(self, checkpoints: Path) -> None:
        self._folder = checkpoints / "private-replays"

    def note(self, number: str, where: str) -> None:
        """Note the predicate of a replay, by its id, before the replay is noted as begun."""
        FolderPlace(self._folder / number).write(_digest(where).encode())

    def same(self, begun: Iterable[Resend], where: str, start_over: bool) -> Resend | None:
        """The first of some private replays that has this predicate; None where none has.

        Where that cannot be known it raises InputError, or, to `start_over`, takes it for the same.
        """
        for resend in begun:
            try:
                known = (self._folder / resend.id).read_text(encoding="utf-8")
            except FileNotFoundError as error:
                if start_over:
                    return resend
                raise InputError(
                    f"{resend.name} has not ended, and whether it was asked for with this "
                    f"predicate is not known any more, since {self._folder / resend.id} is gone: "
                    "start over with --start-over"
                ) from error
            if known == _digest(where):
                return resend
        return None

    def delete_except(self, begun: Collection[str]) -> None:
        """Remove the files of all replays but those with these ids, which have not ended."""
        for file in self._folder.iterdir() if self._folder.is_dir() else ():
            if file.name not in begun:
                file.unlink(missing_ok=True)


def _digest(where: str) -> str:
    return hashlib.sha256(where.encode()).hexdigest()
