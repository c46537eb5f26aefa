"""Settings of a Kafka client, as Spark's tasks get them: a worker reads them without a library."""

from collections.abc import Mapping
from typing import TypeVar

Value = str | int | bool
Settings = Mapping[str, Value]
"""Of one client, as librdkafka names them."""
V = TypeVar("V", str, Value)


class ClientSettings(dict[str, V]):
    """Settings of one client. Its repr has names only, for no log or traceback to show a secret."""

    def __repr__(self) -> str:
        return f"ClientSettings({', '.join(self)})"

    __str__ = __repr__
