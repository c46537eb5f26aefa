"""The command line in a process that has no Spark: importing pyspark fails there, and names the
module that did it.

python -m tests.support.without_spark -c mirrorlake.yml run --once
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class Trap:
    """A finder of modules that refuses Spark's."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        if name.split(".")[0] in ("pyspark", "py4j"):
            raise AssertionError(f"{name} was reached for")
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, Trap())
    from mirrorlake.cli.main import main

    main(sys.argv[1:])
