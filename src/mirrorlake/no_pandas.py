"""Commands do without pandas: Arrow imports it to ask whether a value is one of its own
(docs/not_obvious.md)."""

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """A finder of modules for which pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """See `importlib.abc.MetaPathFinder`."""
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def leave_pandas_out() -> None:
    """Have Arrow take no value of this process for one of pandas, unless that was imported before.
    It asks once, here, and gets none; where it is to make objects of pandas, it imports it then.
    For processes that hand Arrow nothing of pandas, before they start threads."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)
