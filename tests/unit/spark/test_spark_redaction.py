"""What Spark Connect would write of a plan, without the values of secret options."""

import re
import sys

import pytest
from pyspark.sql.connect import proto

from mirrorlake.spark.session import REDACTIONS

SECRETS = {
    "kafka.sasl.jaas.config": (
        'o.a.k.PlainLoginModule required username="mirror" password="hunter2\\";x";'
    ),
    "kafka.ssl.key.password": "hunter2",
    "kafka.ssl.keystore.key": "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n",
}
PUBLIC = {
    "kafka.bootstrap.servers": "broker-1:9093",
    "kafka.security.protocol": "SASL_SSL",
    "assign": '{"orders":[0]}',
}


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Java's possessive quantifiers came to Python with 3.11"
)
def test_a_plan_as_text_keeps_what_is_no_secret() -> None:
    source = proto.Read.DataSource(format="kafka", options={**PUBLIC, **SECRETS})
    text = str(proto.Relation(read=proto.Read(data_source=source)))
    assert text.count("hunter2") == len(SECRETS)
    left = re.sub(REDACTIONS["spark.sql.redaction.string.regex"], "(redacted)", text)
    assert "hunter2" not in left and "username" not in left
    assert all(name in left for name in PUBLIC) and "broker-1:9093" in left


def test_options_are_known_by_their_names() -> None:
    pattern = re.compile(REDACTIONS["spark.sql.redaction.options.regex"])
    assert all(
        pattern.search(name) for name in (*SECRETS, "kafka.sasl.oauthbearer.client.secret", "url")
    )
    assert not any(pattern.search(name) for name in PUBLIC)
