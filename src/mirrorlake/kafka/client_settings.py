"""Settings of one Kafka client, as they are passed to Spark's tasks: a worker needs no library to
read them."""

from collections.abc import Mapping
from typing import TypeVar

Value = str | int | bool
Settings = Mapping[str, Value]
"""Of one client, as librdkafka names them."""
V = TypeVar("V", str, Value)


class ClientSettings(dict[str, V]):
    """Settings of one client. Its repr has the names only, so that no log, traceback or assertion
    shows a secret."""

    def __repr__(self) -> str:
        return f"ClientSettings({', '.join(self)})"

    __str__ = __repr__
