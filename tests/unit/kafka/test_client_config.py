"""One security block, in the words of librdkafka."""

import pickle
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, KafkaException, Producer

from mirrorlake.config.client_settings import JAVA_CONSUMER, LIBRDKAFKA_PRODUCER, setting_refusal
from mirrorlake.config.cluster import Cluster
from mirrorlake.config.security import Security
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import TopologyError
from mirrorlake.kafka.config import librdkafka_config

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----"


def resolve(text: str) -> str:
    return {"${secret:kafka/west}": 'pa"ss\\word', "${secret:kafka/ca}": PEM}.get(text, text)


def cluster(**security: object) -> Cluster:
    return Cluster.model_validate(
        {"bootstrap_servers": "b:1", **({"security": security} if security else {})}
    )


def scram(mechanism: str = "SCRAM-SHA-512", protocol: str = "SASL_SSL") -> Cluster:
    return cluster(
        protocol=protocol, mechanism=mechanism, username="mirror", password="${secret:kafka/west}"
    )


def test_plaintext() -> None:
    for bare in (cluster(), cluster(protocol="PLAINTEXT")):
        config = librdkafka_config("west", bare, "producer", resolve)
        assert (
            config.items()
            >= {"bootstrap.servers": "b:1", "client.id": "mirrorlake-west-producer"}.items()
        )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_sasl(mechanism: str, protocol: str) -> None:
    config = librdkafka_config("west", scram(mechanism, protocol), "consumer", resolve)
    assert config["security.protocol"] == protocol
    assert config["sasl.mechanism"] == mechanism
    assert (config["sasl.username"], config["sasl.password"]) == ("mirror", 'pa"ss\\word')


TOKEN = {
    "protocol": "SASL_SSL",
    "mechanism": "OAUTHBEARER",
    "token_endpoint": "https://id/token",
    "client_id": "mirror",
    "client_secret": "${secret:kafka/west}",
}


def test_tokens() -> None:
    chosen = cluster(**TOKEN, scope="all", extensions={"logicalCluster": "lkc-1", "pool": "p"})
    config = librdkafka_config("w", chosen, "admin", resolve)
    assert (
        config.items()
        >= {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": "https://id/token",
            "sasl.oauthbearer.client.id": "mirror",
            "sasl.oauthbearer.client.secret": 'pa"ss\\word',
            "sasl.oauthbearer.scope": "all",
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,pool=p",
        }.items()
    )


FILES = {
    "/ca.pem": PEM.replace("abc", "ca"),
    "/c.pem": PEM,
    "/k.pem": PEM.replace("CERTIFICATE", "PRIVATE KEY"),
}


def test_files_and_texts_are_rendered_as_text() -> None:
    """Executors have no files of the driver's."""
    for ca in ("/ca.pem", "${secret:kafka/ca}"):
        chosen = cluster(protocol="SSL", ca_file=ca)
        text = FILES.get(ca, PEM)
        assert (
            librdkafka_config("w", chosen, "admin", resolve, FILES.__getitem__)["ssl.ca.pem"]
            == text
        )


def test_client_certificates() -> None:
    two = cluster(
        protocol="SSL",
        certificate_file="/c.pem",
        key_file="/k.pem",
        key_password="${secret:kafka/west}",
    )
    config = librdkafka_config("w", two, "producer", resolve, FILES.__getitem__)
    assert (config["ssl.certificate.pem"], config["ssl.key.pem"]) == (
        FILES["/c.pem"],
        FILES["/k.pem"],
    )
    assert config["ssl.key.password"] == 'pa"ss\\word'


def test_host_names_are_verified_unless_told() -> None:
    name = "ssl.endpoint.identification.algorithm"
    strict, lax = cluster(protocol="SSL"), cluster(protocol="SSL", verify_hostname=False)
    assert name not in librdkafka_config("w", strict, "admin", resolve)
    assert librdkafka_config("w", lax, "admin", resolve)[name] == "none"


@pytest.mark.parametrize("text", ["/no/c.pem", "${secret:kafka/west}"])
def test_an_unreadable_file_is_one_sentence_without_its_value(text: str) -> None:
    chosen = cluster(protocol="SSL", ca_file=text)
    with pytest.raises(TopologyError) as caught:
        librdkafka_config("w", chosen, "consumer", resolve)
    assert caught.value.message == f"{text}, a PEM file of cluster w, cannot be read"
    assert "word" not in f"{vars(caught.value)}"


def test_overrides_win_for_their_role_only() -> None:
    settings = {
        "client.id": "mine",
        "check.crcs": True,
        "max.poll.records": 9,
        "fetch.max.wait.ms": 7,
        "client.rack": "${secret:kafka/west}",
    }
    chosen = Cluster.model_validate(
        {"bootstrap_servers": "b:1", "consumer": settings, "producer": {"linger.ms": 3}}
    )
    config = librdkafka_config("w", chosen, "consumer", resolve)
    assert config.items() >= {"client.id": "mine", "check.crcs": True}.items()
    assert config["client.rack"] == 'pa"ss\\word'
    assert "max.poll.records" not in config and config["fetch.wait.max.ms"] == 7
    producer = librdkafka_config("w", chosen, "producer", resolve)
    assert (producer["linger.ms"], producer["client.id"]) == (3, "mirrorlake-w-producer")


@pytest.mark.parametrize(
    ("role", "name", "sentence"),
    [
        ("producer", "acks", "is mirrorlake's own to set: exactly once depends on it"),
        ("producer", "transactional.id", "is mirrorlake's own to set"),
        ("consumer", "group.id", "is mirrorlake's own to set"),
        ("consumer", "isolation.level", "is mirrorlake's own to set: only committed records"),
        ("admin", "bootstrap.servers", "is mirrorlake's own to set: write bootstrap_servers"),
        ("consumer", "sasl.jaas.config", "belongs into the security block, as mechanism"),
        ("producer", "ssl.ca.location", "belongs into the security block, as ca_file"),
        (
            "producer",
            "buffer.memory",
            "which mirrorlake writes with; it says queue.buffering.max.kbytes",
        ),
        ("consumer", "fetch.wait.max.ms", "whose names this block has; it says fetch.max.wait.ms"),
        (
            "producer",
            "linger.sm",
            "is not a setting of librdkafka, which mirrorlake writes with; did you mean linger.ms?",
        ),
        ("admin", "linger.ms", "is not a setting of librdkafka, which mirrorlake asks with"),
        ("admin", "logger", "is not a setting of librdkafka"),
    ],
)
def test_settings_that_are_refused(role: str, name: str, sentence: str, tmp_path: Path) -> None:
    clusters = {
        "w": {"bootstrap_servers": "b:1", role: {name: "hunter2"}},
        "e": {"bootstrap_servers": "b:2"},
    }
    path = tmp_path / "mirrorlake.yml"
    path.write_text(
        yaml.safe_dump({"clusters": clusters, "lake": {"path": "l"}, "flows": {"w->e": {}}})
    )
    with pytest.raises(TopologyError) as caught:
        load_topology(path)
    assert (
        f"clusters.w.{role}.{name}" in caught.value.message
        or f"{role}.{name}" in caught.value.message
    )
    assert sentence in caught.value.message
    assert "hunter2" not in f"{caught.value.message} {vars(caught.value)}"


def test_no_setting_is_both_allowed_and_owned() -> None:
    for name in ("group.id", "acks", "sasl.jaas.config", "ssl.key.password", "security.protocol"):
        assert name not in JAVA_CONSUMER | LIBRDKAFKA_PRODUCER
        assert setting_refusal("consumer", name) and setting_refusal("producer", name)
    assert setting_refusal("consumer", "max.poll.records") is None


@pytest.mark.parametrize("name", sorted(LIBRDKAFKA_PRODUCER))
def test_librdkafka_knows_the_names(name: str) -> None:
    """A name it does not know is told apart from a value it does not like."""
    try:
        Producer({name: "\x7f"})
    except KafkaException as error:
        assert "No such configuration property" not in str(error)


def test_the_test_above_can_fail() -> None:
    with pytest.raises(KafkaException, match="No such configuration property"):
        Producer({"buffer.memory": "1"})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_librdkafka_accepts_the_settings(mechanism: str) -> None:
    config = librdkafka_config("w", scram(mechanism), "consumer", resolve)
    Consumer({**config, "bootstrap.servers": "", "group.id": "g"}).close()


def test_librdkafka_accepts_tokens() -> None:
    config = librdkafka_config(
        "w", cluster(**TOKEN, scope="s", extensions={"a": "b"}), "consumer", resolve
    )
    Consumer({**config, "bootstrap.servers": "", "group.id": "g"}).close()


def test_settings_do_not_show_their_values() -> None:
    settings = librdkafka_config("w", scram(), "admin", resolve)
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings
    for text in (f"{settings!r} {settings}", f"{again!r}", f"{[settings]}"):
        assert "word" not in text.replace("password", "") and "password" in text


def test_passwords_do_not_show_in_a_model() -> None:
    security = Security.model_validate(
        {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u", "password": "hunter2"}
    )
    assert "hunter2" not in f"{security!r} {security} {security.model_dump_json()}"
