"""What an instance of EC2 asks for its credentials, on loopback: they are renewed before they
expire, and both delta-rs and obstore ask by themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

from tests.support.http_server import HttpAnswer, HttpRequest, http_server, json_answer


class InstanceProfile:
    """Gives the credentials of one role.

    Attributes:
        address: where it is asked.
        key: the access key that is given now.
        seconds: for how long it is said to be good; clients renew in the last five minutes.
    """

    def __init__(self, key: str, seconds: float) -> None:
        self.address, self.key, self.seconds = "", key, seconds

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """A token for questions; the name of the role; its credentials."""
        if request.method == "PUT":
            return HttpAnswer(200, b"session", {"x-aws-ec2-metadata-token-ttl-seconds": "21600"})
        if request.path.rstrip("/").endswith("security-credentials"):
            return HttpAnswer(200, b"role")
        until = datetime.now(timezone.utc) + timedelta(seconds=self.seconds)
        document = {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "LastUpdated": "2026-01-01T00:00:00Z",
            "AccessKeyId": self.key,
            "SecretAccessKey": "secret",
            "Token": "token",
            "Expiration": f"{until:%Y-%m-%dT%H:%M:%SZ}",
        }
        return json_answer(200, document)


@contextmanager
def instance_profile(key: str, seconds: float) -> Iterator[InstanceProfile]:
    """One for the time of the block."""
    profile = InstanceProfile(key, seconds)
    with http_server(profile.answer) as profile.address:
        yield profile
