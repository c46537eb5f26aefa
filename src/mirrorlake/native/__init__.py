"""Records from Kafka to Arrow and back, none of which becomes an object of Python's.

Knows nothing of mirrorlake. librdkafka is the one that confluent-kafka's wheel brings; `records.c`
holds the two loops over records, which are compiled for every platform when our own wheel is built,
so that no compiler is needed. Where that is missing, or does not fit the library that is loaded,
`problem` says why, and others do the work as slowly as Python does it.
"""

import os

#: The environment variable that says `off` where the native way is not to be taken, by tests or in
#: an emergency.
SWITCH = "MIRRORLAKE_NATIVE"
#: How long a cluster, or what is read of it, may be silent, seconds.
PATIENCE_SECONDS = 20.0


def switched_off() -> bool:
    """Whether the user does not want the native way."""
    return os.environ.get(SWITCH, "").lower() == "off"
