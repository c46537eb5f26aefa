"""One security block, two dialects."""

import pytest
from confluent_kafka import Consumer

from mirrorlake.core.security import Security
from mirrorlake.core.topology import Cluster
from mirrorlake.errors import TopologyError
from mirrorlake.kafka.config import librdkafka_config, spark_options

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----"


def resolve(text: str) -> str:
    return {"${secret:kafka/west}": 'pa"ss\\word', "${secret:kafka/ca}": PEM}.get(text, text)


def cluster(**security: object) -> Cluster:
    return Cluster.model_validate({"bootstrap_servers": "b:1", **({"security": security} if security else {})})


def scram(mechanism: str = "SCRAM-SHA-512", protocol: str = "SASL_SSL") -> Cluster:
    return cluster(protocol=protocol, mechanism=mechanism, username="mirror", password="${secret:kafka/west}")


def test_plaintext() -> None:
    for bare in (cluster(), cluster(protocol="PLAINTEXT")):
        config = librdkafka_config("west", bare, "producer", resolve)
        assert config.items() >= {"bootstrap.servers": "b:1", "client.id": "mirrorlake-west-producer"}.items()
        assert spark_options("west", bare, resolve, shaded=False)["kafka.bootstrap.servers"] == "b:1"
    assert spark_options("west", cluster(), resolve, shaded=False) == {"kafka.bootstrap.servers": "b:1"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_sasl(mechanism: str, protocol: str) -> None:
    config = librdkafka_config("west", scram(mechanism, protocol), "consumer", resolve)
    assert config["security.protocol"] == protocol
    assert config["sasl.mechanism"] == mechanism
    assert (config["sasl.username"], config["sasl.password"]) == ("mirror", 'pa"ss\\word')
    options = spark_options("west", scram(mechanism, protocol), resolve, shaded=False)
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    assert options["kafka.security.protocol"] == protocol
    assert options["kafka.sasl.mechanism"] == mechanism
    assert options["kafka.sasl.jaas.config"] == (
        f"org.apache.kafka.common.security.{module} required "
        'username="mirror" password="pa\\"ss\\\\word";'
    )  # fmt: skip


def test_only_a_shaded_client_gets_the_prefix() -> None:
    plain = spark_options("west", scram(), resolve, shaded=False)
    shaded = spark_options("west", scram(), resolve, shaded=True)
    assert shaded.pop("kafka.sasl.jaas.config") == "kafkashaded." + plain.pop("kafka.sasl.jaas.config")
    assert shaded == plain


def test_tls_with_a_file_and_with_text() -> None:
    by_file, by_text = cluster(protocol="SSL", ca_file="/ca.pem"), cluster(protocol="SSL", ca_file="${secret:kafka/ca}")
    assert librdkafka_config("w", by_file, "admin", resolve)["ssl.ca.location"] == "/ca.pem"
    assert librdkafka_config("w", by_text, "admin", resolve)["ssl.ca.pem"] == PEM
    options = spark_options("w", by_file, resolve, shaded=False)
    assert options["kafka.ssl.truststore.type"] == "PEM"
    assert options["kafka.ssl.truststore.location"] == "/ca.pem"
    assert spark_options("w", by_text, resolve, shaded=False)["kafka.ssl.truststore.certificates"] == PEM


def test_client_certificates() -> None:
    two = cluster(protocol="SSL", certificate_file="/c.pem", key_file="/k.pem", key_password="${secret:kafka/west}")
    config = librdkafka_config("w", two, "producer", resolve)
    assert (config["ssl.certificate.location"], config["ssl.key.location"]) == ("/c.pem", "/k.pem")
    assert config["ssl.key.password"] == 'pa"ss\\word'
    options = spark_options("w", two, resolve, shaded=False, read_file=lambda path: f"text of {path}")
    assert options["kafka.ssl.keystore.type"] == "PEM"
    assert options["kafka.ssl.keystore.certificate.chain"] == "text of /c.pem"
    assert options["kafka.ssl.keystore.key"] == "text of /k.pem"
    assert options["kafka.ssl.key.password"] == 'pa"ss\\word'
    one = cluster(protocol="SSL", certificate_file="/both.pem", key_file="/both.pem")
    assert spark_options("w", one, resolve, shaded=False)["kafka.ssl.keystore.location"] == "/both.pem"


def test_an_unreadable_client_certificate_is_one_sentence() -> None:
    two = cluster(protocol="SSL", certificate_file="/no/c.pem", key_file="/no/k.pem")
    with pytest.raises(TopologyError, match="/no/c.pem, a PEM file of cluster w"):
        spark_options("w", two, resolve, shaded=False)


def test_overrides_win_for_their_role_only() -> None:
    settings = {"client.id": "mine", "check.crcs": True, "fetch.min.bytes": 9, "client.rack": "${secret:kafka/west}"}
    chosen = Cluster.model_validate({"bootstrap_servers": "b:1", "consumer": settings})
    assert (
        librdkafka_config("w", chosen, "consumer", resolve).items() >= {"client.id": "mine", "check.crcs": True}.items()
    )
    assert "check.crcs" not in librdkafka_config("w", chosen, "producer", resolve)
    options = spark_options("w", chosen, resolve, shaded=False)
    assert (options["kafka.check.crcs"], options["kafka.fetch.min.bytes"]) == ("true", "9")
    assert options["kafka.client.rack"] == 'pa"ss\\word'


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_librdkafka_accepts_the_settings(mechanism: str) -> None:
    config = librdkafka_config("w", scram(mechanism), "consumer", resolve)
    Consumer({**config, "bootstrap.servers": "", "group.id": "g"}).close()


def test_passwords_do_not_show_in_a_model() -> None:
    security = Security.model_validate(
        {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u", "password": "hunter2"}
    )
    assert "hunter2" not in f"{security!r} {security} {security.model_dump_json()}"
