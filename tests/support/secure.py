"""Two Kafka clusters with every door that a `security` block can open, and what it takes to go
through them.

Each broker has, beside PLAINTEXT (whose anonymous user may do everything): TLS, MTLS (client
certificate), SASL and SASLTLS (PLAIN, SCRAM and OAUTHBEARER on each), and EXPIRED, whose
certificate is out of date. Whoever logs in by name is `mirror`, who may do what its ACLs say.
"""

import base64
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.devtools.local.ports import free_ports
from tests.support.http_server import HttpAnswer, HttpRequest, http_server, json_answer

USER = "mirror"
#: Every secret of these clusters has this in it, so that a test can look for it anywhere.
MARK = "hunter2"
PASSWORD = f'{MARK}"\\ pass;word'
CLIENT_SECRET = f"{MARK}-client-secret"
AUDIENCE = "kafka"
DOORS = {
    "TLS": "SSL",
    "MTLS": "SSL",
    "EXPIRED": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
}
_SCRAM = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_MODULES = {"PLAIN": "plain.Plain", "SCRAM-SHA-256": "scram.Scram", "SCRAM-SHA-512": "scram.Scram"}


class Authority:
    """A certificate authority and what it signs, as PEM files in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = rsa.generate_private_key(65537, 2048)
        folder.mkdir(parents=True, exist_ok=True)
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        built = self._build(self._subject, self._key).add_extension(
            x509.BasicConstraints(True, None), critical=True
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(built.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def sign(self, common_name: str, stem: str, expired: bool = False) -> tuple[Path, Path]:
        """Make a key and a certificate for 127.0.0.1; returns the certificate's file and the
        key's."""
        key = rsa.generate_private_key(65537, 2048)
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        built = self._build(subject, key, expired).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        certificate, key_file = self._folder / f"{stem}.crt", self._folder / f"{stem}.key"
        certificate.write_bytes(built.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate, key_file

    def _build(
        self, subject: x509.Name, key: rsa.RSAPrivateKey, expired: bool = False
    ) -> x509.CertificateBuilder:
        start = datetime.now(timezone.utc) - timedelta(days=30)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._subject)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(start).not_valid_after(
            start + timedelta(days=10 if expired else 3650)
        )


class TokenEndpoint:
    """An OAuth server: client credentials in, a signed token out; and the key that brokers check it
    with. Ended by `close`."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        self.asked: list[Mapping[str, Sequence[str]]] = []
        self._ends = ExitStack()
        self.url = self._ends.enter_context(http_server(self._answer))

    def close(self) -> None:
        self._ends.close()

    def _answer(self, request: HttpRequest) -> HttpAnswer:
        if request.method == "GET":
            return json_answer(200, self._key_set())
        expected = base64.b64encode(f"{USER}:{CLIENT_SECRET}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {expected}":
            return json_answer(401, {"error": "invalid_client"})
        self.asked.append(parse_qs(request.body.decode()))
        return json_answer(
            200, {"access_token": self._token(), "token_type": "Bearer", "expires_in": 600}
        )

    def _key_set(self) -> dict[str, object]:
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "test", "use": "sig", "alg": "RS256"}
        return {"keys": [{**key, "n": _integer(numbers.n), "e": _integer(numbers.e)}]}

    def _token(self) -> str:
        now = int(datetime.now(timezone.utc).timestamp())
        claims = {
            "sub": USER,
            "aud": AUDIENCE,
            "iat": now - 1,
            "exp": now + 600,
            "scope": "replicate",
        }
        parts = [
            _encoded(json.dumps(part).encode())
            for part in ({"alg": "RS256", "kid": "test"}, claims)
        ]
        signature = self._key.sign(".".join(parts).encode(), padding.PKCS1v15(), hashes.SHA256())
        return ".".join([*parts, _encoded(signature)])


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _integer(number: int) -> str:
    return _encoded(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@dataclass
class SecureClusters:
    """The clusters, east and west, and the ways in."""

    folder: Path
    authority: Authority
    other_authority: Authority
    tokens: TokenEndpoint
    doors: Mapping[str, Mapping[str, str]]
    embedded: dict[str, EmbeddedCluster] = field(default_factory=dict)

    def open_door(self, name: str) -> str:
        """The PLAINTEXT address of a cluster, where everybody may do everything."""
        return self.embedded[name].bootstrap_servers

    def admin(self, name: str) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.open_door(name)})

    def cluster(self, name: str, mode: str) -> dict[str, Any]:
        """The entry of a topology file for a cluster through a mode: SSL, mTLS, or PLAIN,
        SCRAM-..., OAUTHBEARER, each of these three with `+TLS` behind it or not."""
        ca = {"ca_file": str(self.authority.file)}
        if mode == "PLAINTEXT":
            return {"bootstrap_servers": self.open_door(name)}
        if mode == "SSL":
            return self.through(name, "TLS", protocol="SSL", **ca)
        if mode == "mTLS":
            files = {
                "certificate_file": str(self.folder / "client.crt"),
                "key_file": "${secret:kafka/client.key}",
            }
            return self.through(name, "MTLS", protocol="SSL", **files, **ca)
        mechanism, _, tls = mode.partition("+")
        door = "SASLTLS" if tls else "SASL"
        return self.through(
            name,
            door,
            protocol=DOORS[door],
            mechanism=mechanism,
            **self.login(mechanism),
            **(ca if tls else {}),
        )

    def login(self, mechanism: str) -> dict[str, object]:
        """The keys of a security block that log `mirror` in."""
        if mechanism != "OAUTHBEARER":
            return {"username": USER, "password": "${secret:kafka/mirror}"}
        return {
            "token_endpoint": self.tokens.url,
            "client_id": USER,
            "client_secret": "${secret:kafka/client}",
            "scope": "replicate",
            "extensions": {"purpose": "mirroring"},
        }

    def through(self, name: str, door: str, **security: object) -> dict[str, Any]:
        """A cluster's entry for one door and security block."""
        return {"bootstrap_servers": self.doors[name][door], "security": security}

    def environment(self) -> dict[str, str]:
        """What a command needs to resolve the references of these entries."""
        return {"MIRRORLAKE_SECRETS": str(self.folder / "secrets")}

    def secrets(self) -> list[bytes]:
        """Bytes of which none may be found anywhere: the mark of all passwords, and a piece of the
        client's key."""
        return [MARK.encode(), self.client_key().splitlines()[5].encode()]

    def client_key(self) -> str:
        return (self.folder / "client.key").read_text(encoding="utf-8")

    def authorizer_lines(self, name: str) -> list[str]:
        """What the authorizer of a cluster has decided on `mirror` so far."""
        text = self.embedded[name].log_file().read_text(encoding="utf-8", errors="replace")
        return [line for line in text.splitlines() if f"Principal = User:{USER} is " in line]


@contextmanager
def secure_clusters(folder: Path) -> Iterator[SecureClusters]:
    """Start the clusters for the time of the block."""
    authority, other = Authority(folder, "ca"), Authority(folder, "other-ca")
    authority.sign(USER, "client")
    for stem, expired in (("broker", False), ("expired", True)):
        files = authority.sign("broker", stem, expired)
        (folder / f"{stem}.pem").write_bytes(
            b"".join(file.read_bytes() for file in reversed(files))
        )
    _write_secrets(folder / "secrets", (folder / "client.key").read_text(encoding="utf-8"))
    tokens = TokenEndpoint()
    doors = {
        name: dict(
            zip(DOORS, (f"127.0.0.1:{port}" for port in free_ports(len(DOORS))), strict=True)
        )
        for name in ("east", "west")
    }
    found = SecureClusters(folder, authority, other, tokens, doors)
    try:
        options = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.url}/keys"
        with _java_options(options), ThreadPoolExecutor(len(doors)) as pool:
            each = [(name, _properties(found, addresses)) for name, addresses in doors.items()]
            for started in pool.map(
                lambda pair: start_clusters([pair[0]], folder, properties=pair[1]), each
            ):
                found.embedded |= started
        for name in doors:
            _add_scram_users(found.admin(name))
        yield found
    finally:
        stop_clusters(found.embedded)
        tokens.close()


@contextmanager
def _java_options(options: str) -> Iterator[None]:
    """Hand options to the JVMs that start in the block."""
    os.environ["JDK_JAVA_OPTIONS"] = options
    try:
        yield
    finally:
        del os.environ["JDK_JAVA_OPTIONS"]


def _write_secrets(folder: Path, client_key: str) -> None:
    secrets = {
        "mirror": PASSWORD,
        "client": CLIENT_SECRET,
        "wrong": f"{MARK}-wrong",
        "client.key": client_key,
    }
    for key, value in secrets.items():
        path = folder / "kafka" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n", encoding="utf-8")
        path.chmod(0o600)


def _properties(clusters: SecureClusters, doors: Mapping[str, str]) -> dict[str, str]:
    settings = {
        "listeners": ",".join(f"{name}://{address}" for name, address in doors.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in DOORS.items()
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/,DEFAULT",
        "sasl.oauthbearer.jwks.endpoint.url": f"{clusters.tokens.url}/keys",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    for door, protocol in DOORS.items():
        prefix = f"listener.name.{door.lower()}"
        if protocol.endswith("SSL"):
            store = "expired" if door == "EXPIRED" else "broker"
            settings[f"{prefix}.ssl.keystore.type"] = "PEM"
            settings[f"{prefix}.ssl.keystore.location"] = str(clusters.folder / f"{store}.pem")
            settings[f"{prefix}.ssl.truststore.type"] = "PEM"
            settings[f"{prefix}.ssl.truststore.location"] = str(clusters.authority.file)
            settings[f"{prefix}.ssl.client.auth"] = "required" if door == "MTLS" else "none"
        if protocol.startswith("SASL"):
            settings |= _sasl_properties(prefix)
    return settings


def _sasl_properties(prefix: str) -> dict[str, str]:
    package = "org.apache.kafka.common.security"
    settings = {f"{prefix}.sasl.enabled.mechanisms": ",".join([*_MODULES, "OAUTHBEARER"])}
    for mechanism, module in _MODULES.items():
        # Read by Java's Properties and then by a StreamTokenizer, which each take one layer of
        # backslashes off.
        quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
        users = f' user_{USER}="{quoted}"' if mechanism == "PLAIN" else ""
        settings[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = (
            f"{package}.{module}LoginModule required{users};"
        )
    token = f"{prefix}.oauthbearer.sasl"
    settings[f"{token}.jaas.config"] = f"{package}.oauthbearer.OAuthBearerLoginModule required;"
    settings[f"{token}.server.callback.handler.class"] = (
        f"{package}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    )
    return settings


def _add_scram_users(admin: AdminClient) -> None:
    for mechanism in _SCRAM.values():  # one by one: Kafka refuses a request that names a user twice
        credential = UserScramCredentialUpsertion(
            USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
        )
        admin.alter_user_scram_credentials([credential])[USER].result(30)


#: Every right on everything, for `grant`.
EVERYTHING = [
    {"operation": "ALL", "resource": resource, "pattern": "LITERAL", "name": name}
    for resource, name in (
        ("TOPIC", "*"),
        ("GROUP", "*"),
        ("TRANSACTIONAL_ID", "*"),
        ("BROKER", "kafka-cluster"),
    )
]


def grant(admin: AdminClient, acls: Sequence[Mapping[str, str]]) -> None:
    """Give `mirror` exactly these ACLs ({operation, resource, pattern, name}) and no others."""
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin.delete_acls([everything])[everything].result(30)
    bindings = [
        AclBinding(
            ResourceType[acl["resource"]],
            acl["name"],
            ResourcePatternType[acl["pattern"]],
            f"User:{USER}",
            "*",
            AclOperation[acl["operation"]],
            AclPermissionType.ALLOW,
        )
        for acl in acls
    ]
    for future in admin.create_acls(bindings).values() if bindings else ():
        future.result(30)
