"""The security block: which keys go together, and who the brokers will see."""

import pytest
from pydantic import ValidationError

from mirrorlake.config.security import Security

LOGIN = {"username": "mirror", "password": "hunter2"}
TOKEN = {"token_endpoint": "https://id/token", "client_id": "mirror", "client_secret": "hunter2"}


def make(**keys: object) -> Security:
    return Security.model_validate(keys)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_each_mechanism_on_each_protocol(protocol: str, mechanism: str) -> None:
    keys = TOKEN if mechanism == "OAUTHBEARER" else LOGIN
    security = make(protocol=protocol, mechanism=mechanism, **keys)
    assert (security.sasl, security.encrypted) == (True, protocol == "SASL_SSL")
    assert security.principal == "the principal mirror"
    assert "hunter2" not in f"{security!r} {security} {security.model_dump_json()}"


def test_without_a_login() -> None:
    assert make().principal == "an anonymous client"
    assert make(protocol="SSL").encrypted
    mutual = make(protocol="SSL", certificate_file="c", key_file="k", key_password="hunter2")
    assert mutual.principal == "the principal of certificate_file"
    assert "hunter2" not in f"{mutual!r}"


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"protocol": "SASL_SSL"}, "needs mechanism with protocol SASL_SSL"),
        (
            {"protocol": "SASL_SSL", "mechanism": "PLAIN"},
            "needs username and password with protocol SASL_SSL",
        ),
        (
            {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "", "password": "p"},
            "needs username with",
        ),
        (
            {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "client_id": "x"},
            "needs token_endpoint and client_secret with",
        ),
        (
            {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", **TOKEN, **LOGIN},
            "gives username and password, which mechanism OAUTHBEARER would never use",
        ),
        (
            {
                "protocol": "SASL_SSL",
                "mechanism": "PLAIN",
                **LOGIN,
                "scope": "s",
                "extensions": {"a": "b"},
            },
            "gives scope and extensions, which mechanism PLAIN would never use",
        ),
        ({"protocol": "SSL", **TOKEN}, "which protocol SSL would never use"),
        (
            {"protocol": "SSL", "mechanism": "PLAIN"},
            "gives mechanism, which protocol SSL would never use",
        ),
        ({"ca_file": "ca"}, "gives ca_file, which protocol PLAINTEXT would never use"),
        (
            {"protocol": "SSL", "certificate_file": "c"},
            "needs certificate_file and key_file together",
        ),
    ],
)
def test_keys_that_do_not_go_together(keys: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        make(**keys)
    assert sentence in str(caught.value)
    assert "hunter2" not in str(caught.value)
