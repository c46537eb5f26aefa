"""How files of tests are dealt to processes that run side by side (`-n auto --dist loadfile`): a
file to one of them, and all files that ask Spark to two, so that two start a session and its slow
first queries are asked twice."""

import pytest
from xdist.scheduler import LoadFileScheduling

#: Files that ask Spark in `make test`, and to which of two processes each is dealt, so that both
#: have about as much. They come first.
SPARK_FILES = {
    "tests/integration/test_crash.py": 0,
    "tests/integration/test_forget.py": 1,
    "tests/integration/test_nothing_ends_in_silence.py": 0,
    "tests/integration/test_replay.py": 1,
    "tests/integration/test_views.py": 0,
    "tests/lake/test_both_engines.py": 0,
    "tests/lake/test_catalog_views.py": 1,
    "tests/lake/test_changes_of_rows.py": 0,
    "tests/lake/test_lake_identity.py": 0,
    "tests/lake/test_library.py": 1,
    "tests/lake/test_map_store.py": 0,
    "tests/lake/test_path_tables.py": 1,
    "tests/lake/test_pool_of_tasks.py": 0,
    "tests/lake/test_python_workers.py": 0,
    "tests/lake/test_registration.py": 1,
    "tests/lake/test_tables.py": 0,
    "tests/lake/test_warehouse.py": 1,
}


def scope_of(test: str) -> str:
    """What is dealt to one process with a test: its file, or many files. Pure."""
    file = test.partition("::")[0]
    return f"Spark {SPARK_FILES[file]}" if file in SPARK_FILES else file


class Dealing(LoadFileScheduling):  # type: ignore[misc]
    """By file, and those that ask Spark together."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Dealing | None:
    """Take the place of `--dist loadfile`."""
    return Dealing(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is dealt in large parts."""
    items.sort(key=lambda item: not scope_of(item.nodeid).startswith("Spark"))
