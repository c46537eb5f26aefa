"""Records from Kafka to Arrow and back, without a Python object for any of them.

Knows nothing of mirrorlake. librdkafka is the one of confluent-kafka's wheel; `records.c` has the
two loops over records, which are compiled for every platform when our own wheel is built, so no
compiler is needed. Where they are missing, or do not fit the loaded library, `problem` says why,
and Python code does the work, slowly.
"""

import os

#: The environment variable that disables native code if `off`, for tests or an emergency.
SWITCH = "MIRRORLAKE_NATIVE"
#: How long a cluster, or a partition being read, may be silent, seconds.
PATIENCE_SECONDS = 20.0


def switched_off() -> bool:
    """Whether the user has disabled the native code."""
    return os.environ.get(SWITCH, "").lower() == "off"
