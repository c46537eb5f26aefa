"""References are replaced at the edge, and no value ever shows in an error."""

import traceback

import pytest

from mirrorlake.config.references import Provider, Unresolved, env_provider, resolve
from mirrorlake.errors import TopologyError

PROVIDERS: dict[str, Provider] = {
    "env": env_provider({"USER": "mirror", "EVIL": "${env:USER}"}),
    "secret": str.upper,
}


def test_every_reference_is_replaced_once() -> None:
    assert resolve("x${env:USER}-${secret:kafka/west}", PROVIDERS) == "xmirror-KAFKA/WEST"
    assert resolve("${env:EVIL}", PROVIDERS) == "${env:USER}"
    assert resolve("plain $HOME {x} $", {}) == "plain $HOME {x} $"


@pytest.mark.parametrize(
    "reference",
    [
        "${env:NOBODY}",
        "${vault:a/b}",
        "${secret:noscope}",
        "${env:}",
        "${}",
        "${USER}",
        "${env:a b}",
    ],
)
def test_an_unknown_reference_is_named(reference: str) -> None:
    with pytest.raises(TopologyError) as caught:
        resolve(f"hunter2{reference}", PROVIDERS)
    assert reference in caught.value.message
    assert "hunter2" not in caught.value.message


def test_a_kind_without_provider_is_named() -> None:
    with pytest.raises(TopologyError, match="nothing provides secret"):
        resolve("${secret:a/b}", {"env": env_provider({})})


def test_what_a_provider_raises_does_not_leak() -> None:
    def leaky(name: str) -> str:
        raise RuntimeError(f"hunter2 is the value of {name}")

    with pytest.raises(TopologyError) as caught:
        resolve("${secret:a/b}", {"secret": leaky})
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_provider_says_why_it_has_no_value() -> None:
    def refusing(name: str) -> str:
        raise Unresolved(f"nobody keeps {name}")

    with pytest.raises(TopologyError, match=r"^\$\{secret:a/b\} has no value: nobody keeps a/b$"):
        resolve("${secret:a/b}", {"secret": refusing})
    with pytest.raises(TopologyError, match="the environment variable NOBODY is not set"):
        resolve("${env:NOBODY}", PROVIDERS)
