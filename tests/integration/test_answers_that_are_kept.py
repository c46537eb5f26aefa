"""What a cluster answered before, and answers again, is not made anew; what it answers else is what
a client tells that has kept nothing."""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.groups import GroupAdmin
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.offsets.positions import Committed
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic
from tests.support.waiting import until


@contextmanager
def group_admin(bootstrap: str) -> Iterator[GroupAdmin]:
    settings: dict[str, str | int | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    with closing(
        GroupAdmin(ClusterAdmin("east", settings), LiveSettings(lambda: settings))
    ) as admin:
        yield admin


def test_positions_of_groups_that_rest_are_the_same_objects(clusters: ClusterPair) -> None:
    run = uuid.uuid4().hex[:8]
    topic, rests, moves = (f"{run}-{name}" for name in ("topic", "rests", "moves"))
    create_topic(clusters.east, topic, 3)
    positions = {(topic, partition): Committed(7, f"of {partition}") for partition in range(3)}
    with group_admin(clusters.east) as admin:
        until(
            lambda: not admin.move({rests: positions, moves: positions}), "a coordinator is there"
        )
        first, again = (admin.positions([rests, moves]).positions for _ in range(2))
        assert first == {rests: positions, moves: positions}
        assert all(again[group] is first[group] for group in (rests, moves))
        admin.move({moves: {(topic, 1): Committed(9)}})
        told = admin.positions([rests, moves, "no-such-group"])
        assert told.positions[rests] is first[rests]
        assert told.positions[moves][topic, 1] == Committed(9)
        with group_admin(clusters.east) as other:
            assert told == other.positions([rests, moves, "no-such-group"])
        admin.positions([moves]), admin.positions([moves])
        assert admin._answers._lines.keys() == {moves}, "nothing is kept that none asks about"
