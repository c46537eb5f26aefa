"""Commands avoid pandas, which Arrow imports to test values (docs/not_obvious.md)."""

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """A module finder that makes pandas appear not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """See `importlib.abc.MetaPathFinder`."""
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def leave_pandas_out() -> None:
    """Keep Arrow from importing pandas, unless it is imported already. Arrow probes for it once,
    here, and does not find it; to convert to pandas it still imports it. For processes that pass no
    pandas objects to Arrow, before they start threads."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)
