"""What a broker answers, and no other place says in words, ends a command with a sentence."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.cli import main


@pytest.mark.parametrize("error", [KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))])
def test_a_command_ends_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def app(args: Any) -> None:
        raise error

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(SystemExit) as ended:
        main.main(["verify"])
    assert ended.value.code == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("mirrorlake: a cluster did not do what was asked of it: ")
    assert "Leader not available" in sentence


def test_what_is_a_mistake_of_ours_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def app(args: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(ZeroDivisionError):
        main.main(["verify"])
