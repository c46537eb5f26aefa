"""The command line where libraries are not installed: importing their modules fails as it does
then.

python -m tests.support.missing pyspark,py4j -c mirrorlake.yml status
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class Missing:
    """A finder of modules that finds none of these."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = frozenset(modules)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        if self._modules & {name, name.partition(".")[0]}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, Missing(sys.argv[1].split(",")))
    from mirrorlake.cli.main import main

    main(sys.argv[2:])
