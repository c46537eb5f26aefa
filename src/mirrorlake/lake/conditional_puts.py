"""Checks whether a store or a file system can hold a lake: a commit is a put, or a link, that fails
where the file already exists.

In a store that accepts such a put all the same, two processes would overwrite each other's commits
without an error. A file system without links, as of a mounted bucket, takes no commits.
"""

import errno
import uuid
from pathlib import Path

from mirrorlake.errors import LakeError
from mirrorlake.lake.place import FolderPlace, Place

#: The errors of `link` on a file system without links: EPERM on Linux for FAT; one of the others
#: for those in user space (FUSE).
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def check_conditional_puts(root: Place) -> None:
    """Check that a lake at a place, or one to be made there, can be committed to, by a file that is
    put there, or into the nearest folder above, and deleted again: three requests of a store.

    Raises LakeError where it cannot, OSError where a store refuses. A folder that cannot be written
    to says nothing of its file system: the first write there reports that.
    """
    if root.in_store:
        _try(root / "_checkpoints" / f"probe-{uuid.uuid4().hex}", root)
        return
    folder = Path(str(root)).absolute()
    folder = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        _try(FolderPlace(folder) / f".probe-{uuid.uuid4().hex}", root)
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise LakeError(
                f"no lake can be made at {root}: its file system ({_kind(folder)}) has no hard "
                f"links ({error.strerror}), by which a commit is made; give a mounted bucket as a "
                "URL in lake.path (s3://…, abfss://…, gs://…), or take a folder of a disk or of NFS"
            ) from error


def _try(probe: Place, root: Place) -> None:
    probe.create(b"the first")
    try:
        probe.create(b"the second")
    except FileExistsError:
        return
    finally:
        probe.delete()
    raise LakeError(
        f"no lake can be kept at {root}: its store has overwritten an object by a put that had to "
        "fail since the object was there, so two processes would overwrite each other's commits; "
        "choose a store with conditional puts (If-None-Match) for lake.path"
    )


def _kind(folder: Path) -> str:
    """Linux's name for a folder's file system, such as fuse.s3fs, or "of an unknown type"."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "of an unknown type"
    mounts = [line.split()[1:3] for line in lines]
    at = [(place, kind) for place, kind in mounts if folder.is_relative_to(place)]
    return max(at, key=lambda mount: len(mount[0]))[1] if at else "of an unknown type"
