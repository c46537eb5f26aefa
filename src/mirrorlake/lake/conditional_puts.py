"""Whether a store can hold a lake: a commit is a put that fails where the object is there already.

In a store that makes such a put all the same, two processes would overwrite each other's commits,
and nobody would hear of it.
"""

import uuid

from mirrorlake.errors import LakeError
from mirrorlake.lake.place import Place


def check_conditional_puts(root: Place) -> None:
    """See whether the store of a lake that is to be made has such puts, by an object that is put
    there and deleted again; on a disk a link does the same.

    Raises LakeError where it has none, OSError where it refuses.
    """
    if not root.in_store:
        return
    probe = root / "_checkpoints" / f"probe-{uuid.uuid4().hex}"
    probe.create(b"the first")
    try:
        probe.create(b"the second")
    except FileExistsError:
        return
    finally:
        probe.delete()
    raise LakeError(
        f"no lake can be made at {root}: its store has overwritten an object by a put that had to "
        "fail since the object was there, so two processes would overwrite each other's commits; "
        "choose a store with conditional puts (If-None-Match) for lake.path"
    )
