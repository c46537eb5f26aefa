"""What is told of topics that cannot be mirrored holds as long as they cannot."""

from pathlib import Path

import pytest

from mirrorlake.control.topic_plan import TopicPlan
from mirrorlake.control.unmade_topics import UnmadeTopics
from mirrorlake.lake.incidents import Incidents
from tests.support.lake_rows import FLOW, no_session, opened, write_file

PLAN = TopicPlan("orders", "east.orders", 3, 1, "refuse", "the name is taken")


@pytest.fixture
def incidents(tmp_path: Path) -> Incidents:
    write_file(tmp_path)
    return Incidents(opened(no_session, tmp_path / "mirrorlake.yml")[0])


def refreshed(unmade: UnmadeTopics, *plans: TopicPlan) -> list[TopicPlan]:
    """As a refresh does it."""
    unmade.replace({}, {plan.topic for plan in plans})
    return unmade.report_plans(plans)


def test_a_topic_is_told_of_until_it_can_be_mirrored_and_again(incidents: Incidents) -> None:
    unmade = UnmadeTopics(FLOW, incidents)
    assert refreshed(unmade, PLAN) == [PLAN]
    assert refreshed(unmade, PLAN) == [], "once"
    assert incidents.open_kinds(FLOW) == {"topic_refused"}
    # Its incident stayed open until the process ended ...
    refreshed(unmade)
    assert incidents.open_kinds(FLOW) == set()
    # ... and of a topic that was closed, by whatever, nothing was told in this process again.
    assert refreshed(unmade, PLAN) == [PLAN]
    assert incidents.open_kinds(FLOW) == {"topic_refused"}


def test_a_topic_of_which_the_lake_took_no_news_is_told_of_by_the_next_refresh(
    incidents: Incidents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would not be mirrored, and no operator would know, for as long as the process
    lasts."""
    unmade = UnmadeTopics(FLOW, incidents)

    def full(_flow: str, _kind: str, errors: list[object]) -> None:
        if errors:
            raise OSError("no space left")

    with monkeypatch.context() as lake, pytest.raises(OSError, match="no space"):
        lake.setattr(incidents, "open_all", full)
        refreshed(unmade, PLAN)
    assert refreshed(unmade, PLAN) == [PLAN]
    assert incidents.open_kinds(FLOW) == {"topic_refused"}
