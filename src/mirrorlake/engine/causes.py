"""What lies behind an error: the one line of a Python or JVM text that says most."""

import re

from mirrorlake.errors import MirrorlakeError, ReplicationError


def cause_of(error: BaseException | None) -> str:
    """The line of an error text that says most: what a worker raised, or the innermost cause."""
    text = str(error or "unknown error").strip()
    raised = [line for line in text.splitlines() if re.match(r"[\w.]*(Error|Exception|Refused): ", line)]
    causes = [line.split("Caused by: ", 1)[1] for line in text.splitlines() if "Caused by: " in line]
    return ((raised[:1] or causes[-1:] or text.splitlines()[:1])[0])[:500]


def in_our_words(error: BaseException, what: str) -> MirrorlakeError:
    """An error of ours as it is; any other as one that says what stopped, and why."""
    return error if isinstance(error, MirrorlakeError) else ReplicationError(f"{what} stopped: {cause_of(error)}")
