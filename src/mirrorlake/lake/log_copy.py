"""The relevant part of a table's log in a store, copied to this host when the table is opened. By
itself, delta-rs reads each commit there twice and a checkpoint in a dozen parts, by a client for
each table; and later questions about the newest commits would read them once more."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Hashable, Sequence

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirrorlake.lake.delta_log import DeltaLog, versions_in
from mirrorlake.lake.log_repair import checkpoints_of, hinted
from mirrorlake.lake.place import FolderPlace, Place
from mirrorlake.threads import side_by_side

#: How many commits' copies are kept as a table goes on.
_KEPT = 5
#: A checkpoint of more actions is not copied: it has megabytes, and delta-rs reads parts.
_MOST_ACTIONS = 20_000


class LogCopy(DeltaLog):
    """The log of one table that is ours, in a store. Copied files are read here, others there.
    delta-rs reads there a log that is not as we write them, and any log if this host has no room.
    For one thread at a time, beside others that read `text`."""

    def __init__(self, table: Place) -> None:
        super().__init__(table)
        self._here: FolderPlace | None = None
        self._end: Callable[[], object] = lambda: None
        self._checkpoint = -1
        self._marked: tuple[int, Hashable | None] = -1, None  # a commit, and its mark

    def opened(self, without_files: bool = False) -> DeltaTable:
        delta = self._copied()
        return super().opened(without_files) if delta is None else delta

    def _copied(self) -> DeltaTable | None:
        self._forget()
        try:
            hint = hinted(self.folder)
        except ValueError:
            return None
        if hint is not None and hint.actions > _MOST_ACTIONS:
            return None
        first = -1 if hint is None else hint.version
        names = self.folder.names("" if hint is None else f"{first:020d}")
        checkpoint = max(checkpoints_of(names), default=-1)
        commits = [version for version in versions_in(names) if version > checkpoint]
        files = [] if checkpoint < 0 else [self.checkpoint_of(checkpoint)]
        files += map(self.file_of, commits)
        if not files or checkpoint < first or not _are_whole(commits, checkpoint):
            return None
        try:
            if not self._take(files):
                return None
            delta = DeltaTable(str(self._here))
        except (DeltaError, FileNotFoundError):  # it is damaged, or was cleaned up meanwhile
            self._forget()
            return None
        self._checkpoint = checkpoint
        return delta

    def _take(self, files: Sequence[Place]) -> bool:
        """Copy files; False where this host has no room. Raises OSError if the store fails."""
        contents = side_by_side(lambda file: file.read_marked(), files)
        try:
            if self._here is None:
                folder = tempfile.mkdtemp(prefix="mirrorlake-log-")
                self._end = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
                self._here = FolderPlace(folder)
            log = self._here / "_delta_log"
            log.mkdir(exist_ok=True)
            for file, (content, _) in zip(files, contents, strict=True):
                (log / file.name).write_bytes(content)
        except OSError:
            self._forget()
            return False
        if newest := versions_in([files[-1].name]):
            self._marked = newest[0], contents[-1][1]
        return True

    def _forget(self) -> None:
        self._end()
        self._here, self._checkpoint, self._marked = None, -1, (-1, None)

    def follow(self, delta: DeltaTable) -> None:
        if self._here is None:
            super().follow(delta)
            return
        version = delta.version()
        commits = self.versions(version)
        if not _are_whole(commits, version):
            raise FileNotFoundError(f"commit {version + 1} of {self.table} is gone")
        if commits and not self._take([*map(self.file_of, commits)]):
            raise OSError(f"no room on this host for the log of {self.table}")
        delta.update_incremental()
        log = DeltaLog(self._here)
        for old in log.versions():
            if old <= delta.version() - _KEPT:
                log.file_of(old).delete()

    def mark_of(self, version: int) -> Hashable | None:
        known, mark = self._marked
        return mark if known == version else super().mark_of(version)

    def text(self, version: int) -> str | None:
        if self._here is not None:
            copied = DeltaLog(self._here).text(version)
            if copied is not None:
                return copied
        return super().text(version)

    def checkpoint_of(self, version: int) -> Place:
        if self._here is None or version != self._checkpoint:
            return super().checkpoint_of(version)
        return DeltaLog(self._here).checkpoint_of(version)

    def newest_checkpoint(self) -> int:
        """The copy's checkpoint, if there is a copy; else see `DeltaLog.newest_checkpoint`."""
        return super().newest_checkpoint() if self._here is None else self._checkpoint


def _are_whole(commits: Sequence[int], behind: int) -> bool:
    """Whether the commits behind a version are there without a gap."""
    return list(commits) == [*range(behind + 1, behind + 1 + len(commits))]
