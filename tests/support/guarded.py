"""A cluster with a door that wants a password, beside the open one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.devtools.local.ports import free_ports

USER = "mirror"


@dataclass
class Guarded:
    """A cluster whose door `address` wants a password by SCRAM; the other one is open."""

    cluster: EmbeddedCluster
    address: str
    secrets: Path

    @property
    def open(self) -> str:
        """The address at which everybody is welcome."""
        return self.cluster.bootstrap_servers

    def set_password(self, password: str) -> None:
        """What the brokers want from now on of who connects."""
        credential = UserScramCredentialUpsertion(
            USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode()
        )
        admin = AdminClient({"bootstrap.servers": self.open})
        admin.alter_user_scram_credentials([credential])[USER].result(30)

    def put(self, password: str) -> None:
        """What the secret store gives from now on."""
        path = self.secrets / "kafka" / USER
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_text(password, encoding="utf-8")

    def restart(self) -> None:
        """Whoever is connected has to log in again."""
        self.cluster.stop()
        self.cluster.start()

    def entry(self) -> dict[str, object]:
        """The cluster in a topology file."""
        security = {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", "username": USER}
        return {
            "bootstrap_servers": self.address,
            "security": {**security, "password": "${secret:kafka/mirror}"},
        }


@contextmanager
def guarded_cluster(folder: Path, password: str) -> Iterator[Guarded]:
    """Start it, for the time of the block; its secrets lie in `folder / "secrets"`."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    properties = {
        "listeners": f"GUARDED://{address}",
        "listener.security.protocol.map": "GUARDED:SASL_PLAINTEXT",
        "listener.name.guarded.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.guarded.scram-sha-512.sasl.jaas.config": f"{module} required;",
    }
    started = start_clusters(["north"], folder / "clusters", properties=properties)
    found = Guarded(started["north"], address, folder / "secrets")
    try:
        found.set_password(password)
        found.put(password)
        yield found
    finally:
        stop_clusters(started)
