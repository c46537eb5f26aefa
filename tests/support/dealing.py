"""How files of tests are dealt to processes that run side by side (`-n auto --dist loadfile`): a
file to one of them, and all files that ask Spark to two, so that two start a session and its slow
first queries are asked twice."""

import zlib

import pytest
from xdist.scheduler import LoadFileScheduling

#: How many processes have files that ask Spark.
PROCESSES = 2
#: Such files: all of tests/lake, and of others each with its process, so that both have about as
#: much. They come first.
SPARK_FOLDER = "tests/lake/"
SPARK_FILES = {
    "tests/integration/test_crash.py": 0,
    "tests/integration/test_fidelity.py": 1,
    "tests/integration/test_forget.py": 1,
    "tests/integration/test_nothing_ends_in_silence.py": 0,
    "tests/integration/test_replay.py": 1,
}


def scope_of(test: str) -> str:
    """What is dealt to one process with a test: its file, or many files. Pure."""
    file = test.partition("::")[0]
    number = SPARK_FILES.get(file)
    if file.startswith(SPARK_FOLDER):
        # by a bit of it that deals about as many seconds to each
        number = zlib.crc32(file.encode()) // 8 % PROCESSES
    return file if number is None else f"Spark {number}"


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
