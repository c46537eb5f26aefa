"""What is dealt to processes that run tests side by side (tests/support/dealing.py)."""

from tests.support.dealing import PROCESSES, SPARK_FILES, scope_of
from tests.support.wide import TESTS, files


def test_files_that_ask_spark_go_to_two_processes_and_any_other_one_by_itself() -> None:
    asking = [f"tests/{file}" for file in files("lake")] + list(SPARK_FILES)
    dealt = [scope_of(f"{file}::test_one") for file in asking]
    assert set(dealt) == {f"Spark {number}" for number in range(PROCESSES)}
    assert all((TESTS.parent / file).exists() for file in SPARK_FILES)
    for file in ("tests/integration/test_groups.py", "tests/unit/lake/test_place.py"):
        assert scope_of(f"{file}::test_one[a::b]") == file
