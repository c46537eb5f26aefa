"""What an object store says when it refuses a request, or does not answer: a sentence for a person.

Who works on tries again, as with a disk (`worker.py`); who only asked hears it.
"""

import re

from mirrorlake.errors import LakeError, text_of

#: How `object_store`, by which both obstore and delta-rs ask, begins what a store answered.
_OF_STORE = re.compile(r"Generic (S3|MicrosoftAzure|GCS) error|The operation lacked ")
#: Colours and arrows of delta-rs' chains of causes, and the rest of a page of XML.
_ADORNED, _PAGE = re.compile(r"(\x1b\[\d*m|↳|\s)+"), re.compile(r":? ?<\?xml.*")
_LONGEST = 400


def store_refusal(error: BaseException) -> LakeError | None:
    """What a command ends with that met an error of an object store; None for any other error."""
    if not isinstance(error, OSError) or error.errno is not None:
        return None
    text = text_of(error)
    if _OF_STORE.search(text) is None:
        return None
    answer = _PAGE.sub("", _ADORNED.sub(" ", text)).strip()[:_LONGEST]
    return LakeError(
        f"the lake's store refused a request, or did not answer: {answer}; "
        "try again when it answers, or change lake.path or lake.storage"
    )
