"""Secrets are resolved again after a refusal and from time to time; what cannot be resolved stays
as it was."""

import pytest

from mirrorlake.errors import TopologyError
from mirrorlake.kafka.renewal import SECRETS_SECONDS, LiveSettings


class Store:
    """A password that is rotated, and a clock."""

    def __init__(self) -> None:
        self.password: str | None = "old"
        self.asked = 0
        self.now = 0.0
        self.settings = LiveSettings(self.read, lambda: self.now)

    def read(self) -> dict[str, str]:
        """What a client is made with."""
        self.asked += 1
        if self.password is None:
            raise TopologyError("${secret:kafka/west} has no value")
        return {"sasl.password": self.password}


@pytest.fixture
def store() -> Store:
    """A store that was asked once."""
    return Store()


def test_a_rotated_secret_is_seen_at_the_interval(store: Store) -> None:
    store.password = "new"
    store.now = SECRETS_SECONDS - 1
    assert (
        not store.settings.renewed()
        and store.settings.now == {"sasl.password": "old"}
        and store.asked == 1
    )
    store.now = SECRETS_SECONDS
    assert store.settings.renewed() and store.settings.now == {"sasl.password": "new"}
    assert not store.settings.renewed(), "told once"


def test_a_refusal_asks_at_once(store: Store) -> None:
    assert not store.settings.renewed(refused=True), "the same still"
    store.password = "new"
    assert store.settings.renewed(refused=True) and store.settings.now == {"sasl.password": "new"}


def test_a_secret_that_is_away_for_a_moment_stays_as_it_was(store: Store) -> None:
    store.password = None
    assert not store.settings.renewed(refused=True) and store.settings.now == {
        "sasl.password": "old"
    }
    store.password = "new"
    assert store.settings.renewed(refused=True)


def test_one_that_never_was_is_an_error() -> None:
    def missing() -> dict[str, str]:
        raise TopologyError("${secret:kafka/west} has no value")

    with pytest.raises(TopologyError):
        LiveSettings(missing)
