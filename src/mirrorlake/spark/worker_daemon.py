"""The process from which Spark's Python workers of a local session are forked: pyspark's own, with
the imports that each of them needs (docs/not_obvious.md).

After each task pyspark has a worker collect garbage: `gc.freeze` exempts what was imported before.
Before each task it has a worker forget what Python's import path has, and list Spark's jar anew.
"""

import gc
import sys
from importlib import import_module

from pyspark.daemon import manager

#: The module that runs a worker's tasks, as pyspark reads it. Version 4.0 imports it before the
#: fork; 4.2 in each worker, in case it starts threads, which it does not after the other imports.
_RUNS = next((name for name in sys.argv[1:2] if name.startswith("pyspark")), "pyspark.worker")
#: Arrow imports pandas if it is installed, whether or not a worker needs it.
_NEEDED = ("confluent_kafka", "pandas", "pyarrow.parquet", _RUNS)

if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if not place.endswith(".jar")]
    for inside in [place for place in sys.path_importer_cache if ".jar" in place]:
        del sys.path_importer_cache[inside]
    for name in _NEEDED:
        import_module(name)
    gc.collect()
    gc.freeze()
    manager()
