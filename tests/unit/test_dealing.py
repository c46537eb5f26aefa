"""What is dealt to processes that run tests side by side (tests/support/dealing.py)."""

from tests.support.dealing import PROCESSES, scope_of
from tests.support.wide import files


def test_files_of_lakes_go_to_two_processes_and_any_other_one_by_itself() -> None:
    dealt = [scope_of(f"tests/{file}::test_one") for file in files("lake")]
    assert len(set(dealt)) == PROCESSES
    assert max(map(dealt.count, dealt)) <= 2 * len(dealt) / PROCESSES - 6, "one has nearly all"
    for file in ("tests/integration/test_crash.py", "tests/unit/lake/test_place.py"):
        assert scope_of(f"{file}::test_one[a::b]") == file
