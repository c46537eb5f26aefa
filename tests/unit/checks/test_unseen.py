"""Deletions and groups that a flow does not see are notes that name them."""

from mirrorlake.checks.unseen import (
    left_out_groups,
    missed_deletions,
    unlisted_groups,
    unmatched_groups,
)

DAY, HOUR = 86_400_000, 3_600_000
FLOW = "east->west"


def test_a_flow_that_was_away_for_less_than_deletions_are_kept_has_seen_them() -> None:
    assert list(missed_deletions(FLOW, HOUR, {"orders": DAY, "users": HOUR})) == []
    assert list(missed_deletions(FLOW, 10 * DAY, {})) == []


def test_one_that_was_away_for_longer_is_named_with_its_topics() -> None:
    kept = {"orders": DAY, "users": HOUR, "stock": 9 * DAY}
    (note,) = missed_deletions(FLOW, 2 * DAY + HOUR, kept)
    assert (note.rule, note.severity, note.flows) == ("missed-deletions", "note", (FLOW,))
    assert note.topic is None, "the topics are mirrored all the same"
    assert "has not run for 2 d 1 h" in note.sentence and "(1 h by delete" in note.sentence
    assert note.sentence.endswith("in topics orders, users")


def test_groups_are_named_and_many_are_counted() -> None:
    assert list(left_out_groups(FLOW, [])) == []
    (one,) = left_out_groups(FLOW, ["connect-sink"])
    assert "leaves out group connect-sink, with positions" in one.sentence and one.fix
    (many,) = left_out_groups(FLOW, ["d", "c", "b", "a"])
    assert "leaves out 4 groups, such as a, b, c, with" in many.sentence
    assert many.severity == "note" and many.subject == "a"


def test_a_pattern_that_matches_no_group_is_noted_as_one_that_matches_no_topic() -> None:
    assert list(unmatched_groups(FLOW, "east", {})) == []
    (one,) = unmatched_groups(FLOW, "east", {"biling": "billing", "x.*": ""})
    assert (one.rule, one.severity, one.subject) == ("no-match", "note", "biling")
    assert one.sentence == (
        "groups of flow east->west holds 'biling' (and 1 others), by which it moves no group that "
        "cluster east shows now"
    )
    assert one.fix.startswith("correct the pattern (there is billing); a group")
    (other,) = unmatched_groups(FLOW, "east", {"x.*": ""})
    assert "'x.*', by" in other.sentence and "there is" not in other.fix


def test_a_source_that_does_not_list_all_its_groups_is_a_note() -> None:
    assert list(unlisted_groups(FLOW, "east", [])) == []
    (one,) = unlisted_groups(FLOW, "east", ["broker 2: timed out", "broker 3: timed out"])
    assert "cluster east did not tell of all its groups (broker 2: timed out)" in one.sentence
    assert (one.severity, one.subject) == ("note", "east") and one.fix
