"""Why a client of a cluster gives nothing."""

import pytest
from confluent_kafka import KafkaError

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable
from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.native.silence import MOST_SECONDS, ClusterSilent, Complaints, Silence, no_record

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: no such user")
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
TRANSPORT = KafkaError(KafkaError._TRANSPORT, "Connection refused")


@pytest.mark.parametrize(
    ("errors", "last"),
    [
        ([ALL_DOWN], ALL_DOWN),
        ([ALL_DOWN, REFUSED], REFUSED),
        ([REFUSED, ALL_DOWN], REFUSED),
        ([REFUSED, TRANSPORT, ALL_DOWN], TRANSPORT),
    ],
)
def test_why_brokers_are_away_is_kept(errors: list[KafkaError], last: KafkaError) -> None:
    complaints = Complaints()
    assert complaints.last is None
    for error in errors:
        complaints.note(error)
    assert complaints.last is last


@pytest.mark.parametrize(
    ("error", "kind"), [(REFUSED, AuthenticationFailed), (TRANSPORT, ClusterUnreachable)]
)
def test_a_silent_cluster_is_named(error: KafkaError, kind: type[Exception]) -> None:
    client: dict[str, str | int | bool] = {"bootstrap.servers": "127.0.0.1:9"}
    with pytest.raises(kind, match="east") as raised, silence_in_words("east", client):
        raise ClusterSilent(error)
    assert isinstance(raised.value.__cause__, ClusterSilent)


def test_partitions_that_are_silent_are_no_silent_cluster() -> None:
    places = [f"t-{number}" for number in range(5)]
    error = no_record(places, 20.0, None)
    with pytest.raises(type(error)) as raised, silence_in_words("east", {}):
        raise error
    assert raised.value is error and not isinstance(error, ClusterSilent)
    text = error.args[0].str()
    assert text == "t-0, t-1, t-2 gave no record for 20 s, of 5 that are read"
    assert no_record(places, 20.0, REFUSED).args[0].str() == f"{text}; the client says: " + (
        REFUSED.str()
    )


class Scene:
    """A client that gives nothing, at moments that a test says."""

    def __init__(self) -> None:
        self.now, self.bytes = 0.0, {7: 0}
        self.asked: list[float] = []
        self.silence = Silence(20, self.received, lambda: self.now)

    def received(self) -> dict[int, int]:
        self.asked.append(self.now)
        return dict(self.bytes)

    def too_long_at(self, until: float, **bytes_a_second: int) -> float | None:
        """When it was called too long, if it was, asked twice a second."""
        while self.now < until:
            self.now += 0.5
            for port, rate in bytes_a_second.items():
                number = int(port.removeprefix("port"))
                self.bytes[number] = self.bytes.get(number, 0) + rate // 2
            if self.silence.is_too_long():
                return self.now
        return None


def test_where_nothing_comes_the_time_is_kept() -> None:
    scene = Scene()
    assert scene.too_long_at(60) == 20
    assert scene.asked == [15, 20], "how much has come is looked at when most of the time is over"
    assert scene.silence.seconds == 20


def test_an_answer_on_its_way_is_waited_for_with_a_bound() -> None:
    scene = Scene()
    assert scene.too_long_at(60, port7=1 << 20) is None
    assert scene.too_long_at(600, port7=1 << 20) == MOST_SECONDS


def test_what_stops_on_the_way_is_too_long_soon() -> None:
    scene = Scene()
    assert scene.too_long_at(60, port7=1 << 20) is None
    assert scene.too_long_at(600) == 65


def test_what_a_client_hears_of_a_cluster_is_no_answer_on_its_way() -> None:
    """Nor is it by several connections, nor by one that is made anew and has had less."""
    scene = Scene()
    assert scene.too_long_at(60, port7=20 << 10, port8=20 << 10) == 20
    scene = Scene()
    scene.bytes = {7: 1 << 30}
    assert scene.too_long_at(19) is None
    scene.bytes = {8: 10 << 10}
    assert scene.too_long_at(60) == 20


def test_a_record_begins_the_time_anew() -> None:
    scene = Scene()
    assert scene.too_long_at(19) is None
    scene.silence.heard()
    assert scene.too_long_at(60) == 39
