"""The scripts beside the pages of `docs/`, which make some of them."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def docs_script(name: str) -> ModuleType:
    """`docs/<name>.py` as a module."""
    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
