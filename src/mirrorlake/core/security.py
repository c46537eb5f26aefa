"""The `security` block of a cluster in the topology file (DESIGN sections 5 and 7)."""

from typing import Literal

from pydantic import SecretStr, field_validator, model_validator

from mirrorlake.core.fields import Model, beside


class Security(Model):
    """How to speak to a cluster; rendered for librdkafka and for the JVM by `mirrorlake.kafka.config` (DESIGN 7).

    Files are PEM files; a relative one lies beside the topology file. A reference may stand for the PEM text itself.
    """

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: str | None = None
    password: SecretStr | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: SecretStr | None = None

    _resolve_files = field_validator("ca_file", "certificate_file", "key_file")(beside)

    @model_validator(mode="after")
    def _complete(self) -> "Security":
        login = {"mechanism": self.mechanism, "username": self.username, "password": self.password}
        files = {name: getattr(self, name) for name in ("ca_file", "certificate_file", "key_file", "key_password")}
        sasl, encrypted = self.protocol.startswith("SASL"), self.protocol.endswith("SSL")
        if sasl and (missing := [name for name, value in login.items() if value is None]):
            raise ValueError(f"needs {' and '.join(missing)} with protocol {self.protocol}")
        if not sasl and (unused := [name for name, value in login.items() if value is not None]):
            raise ValueError(f"gives {' and '.join(unused)}, which protocol {self.protocol} would never use")
        if not encrypted and (unused := [name for name, value in files.items() if value is not None]):
            raise ValueError(f"gives {' and '.join(unused)}, which protocol {self.protocol} would never use")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("needs certificate_file and key_file together")
        return self
