"""What lies behind an error: the one line of a Python or JVM text that says most, and errors of ours within it."""

import re

from mirrorlake.errors import MirrorlakeError, TargetRefused


def cause_of(error: BaseException | None) -> str:
    """The line of an error text that says most: what a worker raised, or the innermost cause."""
    text = str(error or "unknown error").strip()
    raised = [line for line in text.splitlines() if re.match(r"[\w.]*(Error|Exception|Refused): ", line)]
    causes = [line.split("Caused by: ", 1)[1] for line in text.splitlines() if "Caused by: " in line]
    return ((raised[:1] or causes[-1:] or text.splitlines()[:1])[0])[:500]


def known_error(error: BaseException) -> MirrorlakeError | None:
    """The error of ours that a Spark task failed with, if it is one that trying again cannot mend."""
    if isinstance(error, MirrorlakeError):
        return error
    text = str(error)
    for kind in (TargetRefused,):
        marker = f"{kind.__module__}.{kind.__name__}: "
        if marker in text:
            return kind(text.split(marker, 1)[1].splitlines()[0])
    return None
