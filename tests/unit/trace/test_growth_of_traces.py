"""What is told of a record grows no faster than what happened to it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mirrorlake.trace.facts import Facts
from mirrorlake.trace.story import tell
from tests.support.growth import SORTED, growth
from tests.support.traces import DELIVERED, MISSING, STAGED, ago, incident

RECORDS: dict[str, Facts] = {"delivered": DELIVERED, "staged": STAGED, "missing": MISSING}


@pytest.mark.parametrize("case", RECORDS)
def test_a_story_grows_as_what_happened(case: str) -> None:
    def made(size: int) -> Callable[[], object]:
        kinds = ("target_refused", "landing_failed", "flow_stopped")
        happened = [
            incident(kinds[n % 3], at=ago(90), resolved_at=None if n % 2 else ago(50 - n / size))
            for n in range(size)
        ]
        facts = replace(RECORDS[case], incidents=happened)
        return lambda: tell(facts)

    assert growth(made) < SORTED
