"""Security settings of Java clients as the `security` block of a cluster; secrets stay where they
were."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError, TopologyError
from mirrorlake.mm2.importer.document import topology_text
from mirrorlake.mm2.importer.entries import SourceFile
from mirrorlake.mm2.importer.read import Imported, import_files

ON = (
    "clusters = a, west-1\na.bootstrap.servers = a:1\nwest-1.bootstrap.servers = "
    "b:1\na->west-1.enabled = true\n"
)
PLAIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" '
    'password="hunter2";'
)
SCRAM = "x.ScramLoginModule required username=u password=hunter2;"
SASL = ("security.protocol = SASL_SSL", "sasl.mechanism = PLAIN")
TOKEN = "x.OAuthBearerLoginModule required clientId=i clientSecret=hunter2"


def imported(*lines: str, prefix: str = "west-1.") -> Imported:
    text = ON + "".join(
        f"{'' if line.startswith('!') else prefix}{line.lstrip('!')}\n" for line in lines
    )
    draft = import_files([SourceFile("mm2.properties", text.encode())])
    assert "hunter2" not in f"{draft}"
    return draft


def block(*lines: str, prefix: str = "west-1.") -> Any:
    return imported(*lines, prefix=prefix).topology["clusters"]["west-1"].get("security")


def reason(found: Imported, key: str, part: str = "not_supported") -> str:
    (row,) = [row for row in found.report[part] if row["key"].endswith(key)]
    return str(row["reason"])


def test_no_security() -> None:
    assert block() is None
    assert block("security.protocol = PLAINTEXT") == {"protocol": "PLAINTEXT"}
    names = imported("sasl.mechanism = PLAIN", "ssl.truststore.location = /x")
    assert names.topology["clusters"]["west-1"]["security"] == {"protocol": "PLAINTEXT"}
    assert "never uses it" in reason(names, "sasl.mechanism", "not_needed")


@pytest.mark.parametrize(
    ("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
)
def test_user_and_password(mechanism: str, jaas: str) -> None:
    names = imported(
        "security.protocol = sasl_ssl",
        f"sasl.mechanism = {mechanism}",
        f"sasl.jaas.config = {jaas}",
    )
    assert names.topology["clusters"]["west-1"]["security"] == {
        "protocol": "SASL_SSL",
        "mechanism": mechanism,
        "username": "u",
        "password": "${env:WEST_1_PASSWORD}",
    }
    assert names.variables == {"WEST_1_PASSWORD": "clusters.west-1.security.password"}
    assert any(
        "WEST_1_PASSWORD" in note and "line 7: west-1.sasl.jaas.config" in note
        for note in names.report["notes"]
    )


@pytest.mark.parametrize(
    "prefix",
    ["", "west-1.", "west-1.producer.", "a->west-1.target.cluster.", "a->west-1.target.admin."],
)
def test_wherever_it_stands(prefix: str) -> None:
    lines = (
        "security.protocol = SASL_SSL",
        "sasl.mechanism = PLAIN",
        f"sasl.jaas.config = {PLAIN}",
    )
    assert block(*lines, prefix=prefix)["username"] == "u"


def test_which_one_counts() -> None:
    other = PLAIN.replace('"u"', '"other"')
    lines = (
        "security.protocol = SASL_SSL",
        "sasl.mechanism = PLAIN",
        f"sasl.jaas.config = {PLAIN}",
    )
    top = imported(
        *lines,
        f"!sasl.jaas.config = {other}",
        "!security.protocol = SASL_PLAINTEXT",
        "!sasl.mechanism = PLAIN",
    )
    assert top.topology["clusters"]["west-1"]["security"]["username"] == "u"
    assert top.topology["clusters"]["a"]["security"]["username"] == "other"
    role = imported(*lines, f"consumer.sasl.jaas.config = {other}")
    assert role.topology["clusters"]["west-1"]["security"]["username"] == "u"
    assert "takes one value for all flows and clients" in reason(role, "consumer.sasl.jaas.config")


def test_references_of_config_providers() -> None:
    jaas = PLAIN.replace("hunter2", "${file:/etc/s.properties:pw}").replace(
        '"u"', '"${file:/etc/s.properties:user}"'
    )
    names = imported(
        "security.protocol = SASL_SSL", "sasl.mechanism = PLAIN", f"sasl.jaas.config = {jaas}"
    )
    security = names.topology["clusters"]["west-1"]["security"]
    assert (security["username"], security["password"]) == (
        "${env:WEST_1_USERNAME}",
        "${env:WEST_1_PASSWORD}",
    )
    assert any("${file:/etc/s.properties:pw}" in note for note in names.report["notes"])
    whole = imported(
        "security.protocol = SASL_SSL",
        "sasl.mechanism = PLAIN",
        "sasl.jaas.config = ${file:/x:jaas}",
    )
    assert whole.topology["clusters"]["west-1"]["security"]["username"] == "${env:WEST_1_USERNAME}"


def test_references_to_the_environment_stay() -> None:
    providers = ("!config.providers = e", "!config.providers.e.class = org.x.EnvVarConfigProvider")
    for name in ("env", "e"):
        jaas = PLAIN.replace("hunter2", f"${{{name}:PW}}")
        names = imported(
            "security.protocol = SASL_SSL",
            "sasl.mechanism = PLAIN",
            f"sasl.jaas.config = {jaas}",
            *providers,
        )
        assert names.topology["clusters"]["west-1"]["security"]["password"] == "${env:PW}"
        assert names.variables == {"PW": "clusters.west-1.security.password"}
    assert "${secret:scope/key}" in reason(names, "config.providers")


def test_tokens() -> None:
    lines = ("security.protocol = SASL_SSL", "sasl.mechanism = OAUTHBEARER")
    endpoint = "sasl.oauthbearer.token.endpoint.url = https://x/token"
    expected = {
        "protocol": "SASL_SSL",
        "mechanism": "OAUTHBEARER",
        "token_endpoint": "https://x/token",
        "client_id": "i",
        "client_secret": "${env:WEST_1_CLIENT_SECRET}",
        "scope": "s",
    }
    jaas = f"sasl.jaas.config = {TOKEN} scope=s;"
    assert block(*lines, endpoint, jaas) == expected
    credentials = "sasl.oauthbearer.client.credentials.client."
    assert (
        block(
            *lines,
            endpoint,
            f"{credentials}id = i",
            f"{credentials}secret = hunter2",
            "sasl.oauthbearer.scope = s",
        )
        == expected
    )
    for found in (
        imported(*lines, jaas),
        imported(*lines, endpoint, jaas, "sasl.login.callback.handler.class = x.Mine"),
    ):
        given = found.topology["clusters"]["west-1"]["security"]
        assert given == {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}
        assert "cannot log in this way" in reason(found, "sasl.jaas.config")
        assert any(
            note.startswith("clusters.west-1.security does not say how to log in")
            for note in found.report["notes"]
        )


@pytest.mark.parametrize(
    ("mechanism", "lines", "sentence"),
    [
        ("GSSAPI", ("sasl.kerberos.service.name = kafka",), "mechanism must be 'PLAIN', "),
        (
            "AWS_MSK_IAM",
            (
                "sasl.mechanism = AWS_MSK_IAM",
                "sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required;",
            ),
            "mechanism must be 'PLAIN', ",
        ),
        (
            "PLAIN",
            ("sasl.mechanism = PLAIN", f"sasl.jaas.config = {SCRAM}"),
            " needs username and password",
        ),
        (
            "UNKNOWN",
            ("sasl.mechanism = ${file:/etc/login:mechanism}",),
            "mechanism must be 'PLAIN', ",
        ),
    ],
)
def test_logins_that_mirrorlake_does_not_have(
    mechanism: str, lines: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    """No command takes the file until the block is written: without one, plain text was tried."""
    names = imported("security.protocol = SASL_SSL", "ssl.truststore.location = /x", *lines)
    given = names.topology["clusters"]["west-1"]["security"]
    assert given == {"protocol": "SASL_SSL", "mechanism": mechanism}
    path = tmp_path / "mirrorlake.yml"
    path.write_text(topology_text(names.topology, ["mm2.properties"], {}), encoding="utf-8")
    with pytest.raises(TopologyError, match=re.escape("clusters.west-1.security")) as refused:
        load_topology(path)
    assert sentence in str(refused.value)
    assert {row["key"].removeprefix("west-1.") for row in names.report["not_supported"]} == {
        "security.protocol", "ssl.truststore.location", *(line.split(" = ")[0] for line in lines),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (("security.protocol = TLS",), "west-1.security.protocol must be one of PLAINTEXT, SSL"),
        ((*SASL, "sasl.jaas.config = hunter2"), "is no JAAS line"),
        ((*SASL, "sasl.jaas.config = x.PlainLoginModule required username=u;"),
         "west-1.sasl.jaas.config gives no password"),
        ((*SASL, 'sasl.jaas.config = x.PlainLoginModule required p="hunter2'),
         "a quote is not closed"),
    ],
)  # fmt: skip
def test_wrong_security(lines: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        imported(*lines)
    assert "hunter2" not in f"{caught.value} {vars(caught.value)}"


def test_pem_files() -> None:
    lines = ("security.protocol = SSL", "ssl.truststore.type = PEM", "ssl.keystore.type = PEM")
    files = (
        "ssl.truststore.location = /ca.pem",
        "ssl.keystore.location = client.pem",
        "ssl.key.password = hunter2",
    )
    names = imported(*lines, *files)
    assert names.topology["clusters"]["west-1"]["security"] == {
        "protocol": "SSL",
        "ca_file": "/ca.pem",
        "certificate_file": "client.pem",
        "key_file": "client.pem",
        "key_password": "${env:WEST_1_KEY_PASSWORD}",
    }
    assert any("ssl.keystore.location is a relative path" in note for note in names.report["notes"])
    texts = (
        "ssl.truststore.certificates = -----BEGIN C",
        "ssl.keystore.certificate.chain = -----BEGIN D",
        "ssl.keystore.key = hunter2",
    )
    assert block(*lines, *texts) == {
        "protocol": "SSL",
        "ca_file": "-----BEGIN C",
        "certificate_file": "-----BEGIN D",
        "key_file": "${env:WEST_1_KEY_FILE}",
    }


@pytest.mark.parametrize(
    ("kind", "trust", "key"),
    [
        (None, "-storetype JKS -keystore '/a b' > west-1-ca.pem", "keytool -importkeystore "
                                                                  "-srckeystore '/a b'"),
        ("JKS", "-storetype JKS -keystore '/a b' > west-1-ca.pem", "openssl pkcs12 -nodes -in "
                                                                   "client.p12"),
        ("PKCS12", "-storetype PKCS12", "openssl pkcs12 -nodes -in '/a b' -out west-1-client.pem"),
    ],
)  # fmt: skip
def test_java_key_stores_are_named_with_the_command(kind: str | None, trust: str, key: str) -> None:
    types = [f"ssl.{store}.type = {kind}" for store in ("truststore", "keystore") if kind]
    stores = [
        f"ssl.{store}.{what}"
        for store in ("truststore", "keystore")
        for what in ("location = /a b", "password = hunter2")
    ]
    names = imported("security.protocol = SSL", *types, *stores)
    assert names.topology["clusters"]["west-1"]["security"] == {
        "protocol": "SSL", "ca_file": "west-1-ca.pem",
        "certificate_file": "west-1-client.pem", "key_file": "west-1-client.pem",
    }  # fmt: skip
    assert trust in reason(names, "ssl.truststore.location") and key in reason(
        names, "ssl.keystore.location"
    )
    assert (
        len(
            [
                note
                for note in names.report["notes"]
                if "has to be made beside the topology file" in note
            ]
        )
        == 2
    )


def test_other_tls_settings() -> None:
    names = imported(
        "security.protocol = SSL",
        "ssl.endpoint.identification.algorithm =",
        "ssl.protocol = TLSv1.3",
        "ssl.cipher.suites = TLS_X",
        "ssl.engine.factory.class = x.Y",
    )
    assert names.topology["clusters"]["west-1"]["security"] == {
        "protocol": "SSL",
        "verify_hostname": False,
    }
    assert reason(names, "ssl.protocol", "not_needed") and reason(names, "ssl.cipher.suites")
    assert block("security.protocol = SSL", "ssl.endpoint.identification.algorithm = https") == {
        "protocol": "SSL"
    }


def test_two_aliases_that_would_share_a_variable() -> None:
    text = (
        "clusters = x-1, x_1\nx-1->x_1.enabled = true\nsecurity.protocol = "
        "SASL_SSL\nsasl.mechanism = PLAIN\n"
    )
    text += "".join(
        f"{alias}.bootstrap.servers = h:1\n{alias}.sasl.jaas.config = "
        f"{PLAIN.replace('hunter2', password)}\n"
        for alias, password in (("x-1", "one"), ("x_1", "two"))
    )
    draft = import_files([SourceFile("f", text.encode())])
    passwords = [cluster["security"]["password"] for cluster in draft.topology["clusters"].values()]
    assert passwords == ["${env:X_1_PASSWORD}", "${env:X_1_PASSWORD_2}"]


SECRET = st.from_regex(r"S3cr[A-Za-z0-9$%&/()\[\]{}@:.-]{4,12}", fullmatch=True)


@given(SECRET, st.sampled_from(["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]), st.booleans())
def test_no_secret_gets_out(secret: str, mechanism: str, encrypted: bool) -> None:
    module = {
        "PLAIN": "Plain",
        "SCRAM-SHA-512": "Scram",
        "OAUTHBEARER": "OAuthBearer",
        "GSSAPI": "Krb5",
    }[mechanism]
    text = ON + "".join(
        f"{line}\n"
        for line in (
            f"security.protocol = SASL_{'SSL' if encrypted else 'PLAINTEXT'}",
            f"sasl.mechanism = {mechanism}",
            f'sasl.jaas.config = x.{module}LoginModule required username="u" clientId="i" '
            f'password="{secret}" clientSecret="{secret}";',
            "sasl.oauthbearer.token.endpoint.url = https://x",
            f"a.ssl.truststore.password = {secret}",
            f"a.ssl.key.password = {secret}",
            f"a.ssl.keystore.key = {secret}",
            "a.ssl.keystore.certificate.chain = c",
            f"west-1.producer.my.password = {secret}",
            f"a.consumer.sasl.jaas.config = {secret}",
        )
    )
    try:
        draft = import_files([SourceFile("mm2.properties", text.encode())])
    except InputError as error:
        assert secret not in f"{error} {vars(error)}"
        return
    assert secret not in f"{draft.topology} {draft.report} {draft.variables} {draft}"
