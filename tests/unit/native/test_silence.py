"""Why a client of a cluster gives nothing."""

import pytest
from confluent_kafka import KafkaError

from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable
from mirrorlake.kafka.refusals import silence_in_words
from mirrorlake.native.silence import ClusterSilent, Complaints, no_record

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
