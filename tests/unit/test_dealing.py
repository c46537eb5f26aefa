"""What is dealt to processes that run tests side by side (tests/support/dealing.py)."""

from tests.support.dealing import SPARK_FILES, scope_of
from tests.support.wide import TESTS


def test_files_that_ask_spark_go_to_two_processes_and_any_other_one_by_itself() -> None:
    assert {scope_of(f"{file}::test_one") for file in SPARK_FILES} == {"Spark 0", "Spark 1"}
    assert [file for file in SPARK_FILES if not (TESTS.parent / file).exists()] == []
    for file in ("tests/integration/test_groups.py", "tests/unit/lake/test_place.py"):
        assert scope_of(f"{file}::test_one[a::b]") == file
