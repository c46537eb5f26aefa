"""Errors of a store, disk or broker that refuses a request or is silent, as sentences.

Workers retry (`worker.py`); a caller of the library gets the error.
"""

import os
import re
from collections.abc import Callable
from errno import EDQUOT, EIO, EMFILE, ENFILE, ENOSPC, EROFS
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from mirrorlake.errors import ClusterUnusable, LakeError, first_line, text_of

T = TypeVar("T")

#: How a store's answer begins in errors of `object_store`, which obstore and delta-rs both use.
_OF_STORE = re.compile(
    r"Generic (S3|MicrosoftAzure|GCS|HdfsObjectStore) error|^HDFS: |The operation lacked "
)
#: Colours and arrows in delta-rs' chains of causes, and the rest of an XML page.
_ADORNED, _PAGE = re.compile(r"(\x1b\[\d*m|↳|\s)+"), re.compile(r":? ?<\?xml.*")
_LONGEST = 400
#: Disk errors that name no file.
_OF_DISKS = (ENOSPC, EDQUOT, EROFS, EIO)


def store_refusal(error: BaseException) -> LakeError | None:
    """Return the LakeError for an error of an object store; None for any other error."""
    from deltalake.exceptions import DeltaError  # a slow import that not all commands need

    is_of_disk = isinstance(error, OSError) and error.errno is not None
    if is_of_disk or not isinstance(error, OSError | DeltaError):
        return None
    text = text_of(error)
    if _OF_STORE.search(text) is None:
        return None
    answer = _PAGE.sub("", _ADORNED.sub(" ", text)).strip()[:_LONGEST]
    return LakeError(
        f"the lake's store refused a request, or did not answer: {answer}; "
        "try again when it answers, or change lake.path or lake.storage"
    )


def disk_refusal(error: BaseException) -> LakeError | None:
    """The same for a disk error or an unreadable table log, which end a command."""
    from deltalake.exceptions import DeltaError

    if isinstance(error, FileNotFoundError) and error.filename is None and not _is_somewhere():
        return LakeError("the folder in which this was typed is not there any more: go to another")
    if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
        return LakeError(
            f"no more files can be opened ({error.strerror}); allow this process more of them, as "
            "by `ulimit -n 4096`"
        )
    if isinstance(error, OSError) and error.filename is None and error.errno in _OF_DISKS:
        return LakeError(
            f"a file cannot be read or written ({error.strerror}); look at the room on the disks "
            "of the lake and of temporary files (TMPDIR)"
        )
    if isinstance(error, OSError) and error.filename is not None:
        return LakeError(
            f"{error.filename} cannot be read or written ({error.strerror or error}); look at the "
            "path, its rights and the room there, or name another one"
        )
    if isinstance(error, DeltaError):
        return LakeError(
            f"a table of the lake cannot be read or written ({first_line(error)}); where it stays "
            "so, files of it are damaged or gone: put them back from a copy"
        )
    return None


def _is_somewhere() -> bool:
    """Whether the current folder exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def broker_refusal(error: BaseException) -> ClusterUnusable | None:
    """The error for a broker's answer that no other place has put into words; else None."""
    from confluent_kafka import KafkaException  # as above

    if not isinstance(error, KafkaException):
        return None
    from mirrorlake.spark.causes import message_of

    return ClusterUnusable(
        f"a cluster did not do what was asked of it: {message_of(error)}; see that each partition "
        "has a leader, and that the ACLs are those of docs/security.md, then try again",
        alias="",
    )


def raises_lake_errors(opened: type[T]) -> type[T]:
    """Class decorator: have public methods raise LakeError if an object store refuses a request, so
    that callers get one sentence and not a chain of causes."""
    for name, method in list(vars(opened).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(opened, name, in_words(method))
    return opened


def in_words(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same for one method."""

    @wraps(method)
    def asked(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except Exception as error:
            refusal = store_refusal(error)
            if refusal is None:
                raise
        raise refusal  # outside the block, so that no long chain of causes is attached

    return asked
