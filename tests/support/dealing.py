"""How files of tests are dealt to processes that run side by side (`-n auto --dist loadfile`): a
file to one of them, and the files that ask Spark most to two, so that two start a session."""

import zlib

import pytest
from xdist.scheduler import LoadFileScheduling

#: Folders below tests/ of which each file asks Spark, and to how many processes they are dealt.
#: They come first, since a process has many of them.
SPARK_FOLDERS = ("lake",)
PROCESSES = 2


def scope_of(test: str) -> str:
    """What is dealt to one process with a test: its file, or many files. Pure."""
    file = test.partition("::")[0]
    folder = file.removeprefix("tests/").partition("/")[0]
    if folder not in SPARK_FOLDERS:
        return file
    # by a bit of it that deals about as many seconds to each
    return f"Spark {zlib.crc32(file.encode()) // 8 % PROCESSES}"


class Dealing(LoadFileScheduling):  # type: ignore[misc]
    """By file, and by SPARK_FOLDERS."""

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
