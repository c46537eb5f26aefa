"""A mirror that its target would refuse beside another name is named before it is made."""

from mirrorlake.checks.target_names import Made, colliding_names

FLOW = "east->west"


def test_names_that_differ_in_dots_and_underscores_only_collide() -> None:
    made = [Made(FLOW, "a_b", "east.a_b"), Made(FLOW, "c", "east.c")]
    (note,) = colliding_names("west", made, ["east.a.b", "east-c", "other"])
    assert (note.rule, note.severity, note.flows) == ("colliding-names", "note", (FLOW,))
    assert note.subject == "a_b" and note.topic is None
    assert "would be east.a_b, which cluster west refuses beside east.a.b" in note.sentence


def test_so_do_two_that_would_be_made() -> None:
    made = [Made("north->west", "x.y", "x.y"), Made(FLOW, "x_y", "x_y")]
    (note,) = colliding_names("west", made, [])
    assert note.flows == (FLOW,) and "beside x.y" in note.sentence


def test_one_name_of_two_flows_is_no_collision() -> None:
    made = [Made("north->west", "x.y", "x.y"), Made(FLOW, "x.y", "x.y")]
    assert list(colliding_names("west", made, ["x.y"])) == []
