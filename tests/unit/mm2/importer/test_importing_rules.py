"""What each setting of MirrorMaker becomes, and that none is dropped silently."""

import logging
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorlake.config.client_settings import setting_refusal
from mirrorlake.config.flow import Flow
from mirrorlake.config.flow_reasons import normal
from mirrorlake.config.topology import Topology
from mirrorlake.errors import InputError
from mirrorlake.kafka.config import OF_JAVA
from mirrorlake.mm2.importer import client_keys, flow_keys
from mirrorlake.mm2.importer.entries import SourceFile
from mirrorlake.mm2.importer.mirrormaker1 import Options
from mirrorlake.mm2.importer.read import Imported, import_files
from mirrorlake.mm2.importer.report import UNKNOWN

BASE = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n"
ON = f"{BASE}a->b.enabled = true\n"


def dedicated(text: str) -> Imported:
    return import_files([SourceFile("mm2.properties", text.encode())])


def flow_of(text: str, name: str = "a->b") -> dict[str, Any]:
    topology = dedicated(text).topology
    return {**topology.get("defaults", {}), **topology["flows"][name]}


def holds(document: Any, path: str) -> bool:
    """Whether a document has a value under a path of keys, which may hold dots themselves."""
    if not path:
        return True
    if not isinstance(document, dict):
        return False
    return any(
        holds(value, path[len(key) + 1 :])
        for key, value in document.items()
        if f"{path}.".startswith(f"{key}.")
    )


def reason(found: Imported, key: str, part: str) -> str:
    (row,) = [row for row in found.report[part] if row["key"] == key]
    return str(row.get("reason") or row["to"])


def test_every_carried_setting_is_a_field_of_a_flow() -> None:
    assert {normal(key) for key in flow_keys.CARRIED} <= set(Flow.model_fields)
    # What MirrorMaker 2 does not have.
    own = {
        "paused",
        "policy",
        "provenance",
        "delivery",
        "produce_tasks",
        "on_refused",
        "compression",
        "start",
    }
    own |= {"sample_positions_interval_seconds"}
    assert set(Flow.model_fields) - {normal(key) for key in flow_keys.CARRIED} == own


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("a->b.topics = x.*,  y", "topics", ["x.*", "y"]),
        ("topics = x", "topics", ["x"]),
        ("topics =", "topics", []),
        ("topics.blacklist = x", "topics_exclude", ["x"]),
        ("a->b.topics.whitelist = x", "topics", ["x"]),
        ("a->b.groups.blacklist = x", "groups_exclude", ["x"]),
        ("config.properties.blacklist = x", "config_properties_exclude", ["x"]),
        ("topics.blacklist = x\ntopics.exclude = y", "topics_exclude", ["y"]),
        ("a->b.topics = x\na->b.topics = y", "topics", ["y"]),
        ("topics = x\na->b.topics = y", "topics", ["y"]),
        ("replication.factor = 3", "replication_factor", 3),
        ("emit.offset-syncs.enabled = true", "emit_offset_syncs_enabled", True),
        ("offset-syncs.topic.location = target", "offset_syncs_topic_location", "target"),
        ("offset-syncs.topic.replication.factor = 2", "offset_syncs_topic_replication_factor", 2),
        ("sync.topic.acls.enabled = FALSE", "sync_topic_acls_enabled", False),
        ("refresh.topics.interval.seconds = 60", "refresh_topics_interval_seconds", 60),
        ("refresh.groups.interval.seconds = -1", "refresh_groups_enabled", False),
        ("a->b.use.defaults.from = source", "use_defaults_from", "source"),
        ("replication.policy.separator = -", "replication_policy_separator", "-"),
        (
            "replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
            "policy",
            "default",
        ),
        (
            "a->b.replication.policy.class = o.a.k.c.mirror.IdentityReplicationPolicy",
            "policy",
            "identity",
        ),
        ("b.exactly.once.source.support = enabled", "delivery", "exactly_once"),
    ],
)
def test_settings_of_flows(line: str, name: str, value: object) -> None:
    found = flow_of(f"{ON}{line}\n")
    assert found[name] == value


def test_a_setting_of_a_filter_counts_under_a_flow_alone() -> None:
    """MirrorMaker 2 passes on from the top what is in a connector's ConfigDef."""
    assert "use_defaults_from" not in flow_of(f"{ON}use.defaults.from = source\n")


@pytest.mark.parametrize(
    ("lines", "flows"),
    [
        ("a->b.enabled = true", {"a->b": True}),
        ("a->b.enabled = true \nb->a.enabled = false", {"a->b": True, "b->a": False}),
        ("a->b.topics = x", {"a->b": False}),
        ("enabled = true", {"a->b": True, "b->a": True}),
        ("enabled = true\nb->a.enabled = false", {"a->b": True, "b->a": False}),
        (
            "enabled = true\nemit.heartbeats.enabled = false\nb->a.enabled = true\na->b.topics = x",
            {"a->b": False, "b->a": True},
        ),
        (
            "enabled = true\nemit.heartbeats.enabled = false\nb->a.emit.heartbeats.enabled = true",
            {"b->a": True},
        ),
    ],
)
def test_which_flows_run(lines: str, flows: dict[str, bool]) -> None:
    draft = dedicated(f"{BASE}{lines}\n")
    assert {name: flow["enabled"] for name, flow in draft.topology["flows"].items()} == flows
    for name, runs in flows.items():
        assert runs != any(
            note.startswith(f"flow {name} is disabled") for note in draft.report["notes"]
        )


@pytest.mark.parametrize(
    ("line", "key", "part", "text"),
    [
        ("tasks.max = 4", "tasks.max", "not_needed", "produce_tasks"),
        (
            "offset-syncs.source.producer.linger.ms = 1",
            "offset-syncs.source.producer.linger.ms",
            "not_needed",
            "map",
        ),
        (
            "consumer.fetch.min.bytes = 1",
            "consumer.fetch.min.bytes",
            "not_needed",
            "passes no client settings on",
        ),
        ("consumer.poll.timeout.ms = 1", "consumer.poll.timeout.ms", "not_needed", "polls"),
        ("admin.timeout.ms = 1", "admin.timeout.ms", "not_needed", "deadline"),
        ("b.topics = x", "b.topics", "not_needed", "ignores settings of flows under a cluster"),
        ("b.linger.ms = 5", "b.linger.ms", "not_needed", "passes it to no client"),
        ("b.client.id = x", "b.client.id", "not_needed", "to no client"),
        (
            "b.offset.storage.replication.factor = 1",
            "b.offset.storage.replication.factor",
            "not_needed",
            "lake",
        ),
        (
            "a->b.producer.linger.ms = 5",
            "a->b.producer.linger.ms",
            "not_needed",
            "takes b.producer.linger.ms",
        ),
        ("topic.filter.class = x.DefaultTopicFilter", "topic.filter.class", "not_needed", ""),
        ("a->b.consumer.override.x = 1", "a->b.consumer.override.x", "not_needed", "no client"),
        (
            "topic.filter.class = com.example.F",
            "topic.filter.class",
            "not_supported",
            "topics and topics_exclude",
        ),
        (
            "replication.policy.class = com.example.P",
            "replication.policy.class",
            "not_supported",
            "module:Class",
        ),
        (
            "forwarding.admin.class = com.example.A",
            "forwarding.admin.class",
            "not_supported",
            "Java class",
        ),
        ("replication.factor = -1", "replication.factor", "not_supported", "source topic's own"),
        ("a->b.transforms = t", "a->b.transforms", "not_supported", "copies records as they are"),
        ("value.converter = org.x.AvroConverter", "value.converter", "not_supported", "bytes"),
        ("a->b.paused = true", "a->b.paused", "not_supported", "does not know this key"),
        ("frob = 1", "frob", "not_supported", "does not know this key"),
        ("a->c.topics = x", "a->c.topics", "not_supported", "clusters lists only a, b"),
        ("a -> b.topics = x", "a", "not_supported", "without blanks"),
        (
            "a.consumer.isolation.level = read_uncommitted",
            "a.consumer.isolation.level",
            "not_supported",
            "aborted",
        ),
        ("a.consumer.frob = x", "a.consumer.frob", "not_supported", "no setting that a consumer"),
        ("b.producer.acks = 1", "b.producer.acks", "not_supported", "exactly once"),
        (
            "b.producer.max.request.size = 200000000",
            "b.producer.max.request.size",
            "not_needed",
            "takes 1 GB",
        ),
        (
            "b.producer.max.request.size = 2000000000",
            "b.producer.max.request.size",
            "not_supported",
            "up to 1 GB",
        ),
        (
            "a.consumer.interceptor.classes = x",
            "a.consumer.interceptor.classes",
            "not_supported",
            "Java",
        ),
    ],
)
def test_what_is_not_carried_has_a_reason(line: str, key: str, part: str, text: str) -> None:
    assert text in reason(dedicated(f"{ON}{line}\n"), key, part)


def test_a_setting_is_that_of_the_flow_whose_alias_has_a_dot() -> None:
    """It mirrored all topics, since its list was looked for under a flow to `b`."""
    found = dedicated(
        "clusters = a, b, b.c\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n"
        "b.c.bootstrap.servers = c:1\na->b.enabled = true\na->b.topics = x\n"
        "a->b.c.enabled = true\na->b.c.topics = y\n"
    )
    assert {name: flow["topics"] for name, flow in found.topology["flows"].items()} == {
        "a->b": ["x"], "a->b.c": ["y"],
    }  # fmt: skip
    assert found.report["not_supported"] == []


def test_client_settings_of_roles() -> None:
    text = (
        "a.consumer.fetch.max.bytes = 1\na->b.source.consumer.fetch.max.bytes = "
        "2\na.admin.request.timeout.ms = 5\nb.producer.buffer.memory = "
        "4096\nb.producer.max.request.size = 200000000\nb.producer.linger.ms = 7\n"
        "a->b.producer.override.linger.ms = 8\na->b.admin.retry.backoff.ms = 3\n"
    )
    draft = dedicated(ON + text)
    a, b = (draft.topology["clusters"][alias] for alias in "ab")
    assert a["consumer"] == {
        "fetch.max.bytes": 2
    }  # a flow's own setting counts more than the cluster's
    assert a["admin"] == {"socket.timeout.ms": 5, "retry.backoff.ms": 3}
    assert b["producer"] == {"queue.buffering.max.kbytes": 4, "linger.ms": 8}
    assert b["admin"] == {"retry.backoff.ms": 3}
    assert "takes one value for all flows" in reason(
        draft, "a.consumer.fetch.max.bytes", "not_supported"
    )


#: A value of each kind that both kinds of clients accept.
VALUES = {
    "client.id": "x",
    "client.dns.lookup": "use_all_dns_ips",
    "compression.type": "zstd",
    "socket.timeout.ms": 60_000,
}


@pytest.mark.parametrize("role", ["producer", "admin"])
def test_librdkafka_knows_every_name_that_reaches_it(role: str) -> None:
    names = {
        client_keys.RENAMED[role].get(name, name)
        for name in (*client_keys.CARRIED[role], *client_keys.RENAMED[role])
    }
    if role == "producer":
        names |= {"queue.buffering.max.kbytes", "message.max.bytes"}
    assert not [name for name in names if setting_refusal(role, name)]  # type: ignore[arg-type]
    quiet = {"logger": logging.getLogger("quiet"), "error_cb": lambda _error: None}
    Producer(
        {
            "bootstrap.servers": "127.0.0.1:1",
            **quiet,
            **{name: VALUES.get(name, 5_000) for name in names},
        }
    )


def test_what_the_consumer_that_reads_lacks_is_not_called_carried() -> None:
    assert client_keys.CARRIED["consumer"] - OF_JAVA.keys() == client_keys.WITHOUT_COUNTERPART
    draft = dedicated(f"{ON}a.consumer.max.poll.records = 5\n")
    assert "librdkafka" in reason(draft, "a.consumer.max.poll.records", "not_needed")
    assert "consumer" not in draft.topology["clusters"]["a"]


def test_kafkas_consumer_knows_every_name_that_reaches_it() -> None:
    assert not [
        name for name in client_keys.CARRIED["consumer"] if setting_refusal("consumer", name)
    ]


def test_groups_are_moved_only_where_mirrormaker_was_told_to() -> None:
    """With flows both ways, our own default could set an empty group to where the other side's
    stands."""
    both = f"{ON}b->a.enabled = true\n"

    def synced(text: str) -> dict[str, bool]:
        topology = Topology.model_validate(dedicated(text).topology)
        return {name: flow.sync_group_offsets_enabled for name, flow in topology.flows.items()}

    assert synced(both) == {"a->b": False, "b->a": False}
    assert synced(f"{both}a->b.sync.group.offsets.enabled = true\n") == {
        "a->b": True,
        "b->a": False,
    }
    assert synced(f"{both}sync.group.offsets.enabled = true\n") == {"a->b": True, "b->a": True}
    (note,) = [
        note
        for note in dedicated(both).report["notes"]
        if note.startswith("sync_group_offsets_enabled")
    ]
    assert "a->b, b->a" in note and "says false" in note


def test_what_arrives_otherwise_is_told_first() -> None:
    both = f"{ON}b->a.enabled = true\n"
    draft = dedicated(both)
    assert draft.report["notes"][: len(draft.arrives)] == list(draft.arrives)
    assert draft.arrives[0].startswith(
        "a->b, b->a: MirrorMaker reads by isolation.level = read_uncommitted"
    )
    one = dedicated(f"{both}a.consumer.isolation.level = read_committed\n").arrives[0]
    assert one.startswith("b->a: MirrorMaker reads")
    clean = (
        f"{both}a.consumer.isolation.level = read_committed\nb.consumer.isolation.level = "
        "read_committed\n"
    )
    assert not [text for text in dedicated(clean).arrives if "isolation.level" in text]
    dropped = dedicated(f"{both}consumer.isolation.level = read_committed\n")
    assert dropped.arrives[0] == draft.arrives[0], (
        "MirrorMaker does not pass it on from the top of the file"
    )


def test_defaults_that_differ_are_told_once_each() -> None:
    notes = dedicated(ON).report["notes"]
    for name in (
        "topics_exclude",
        "replication_factor",
        "emit_offset_syncs_enabled",
        "refresh_topics_interval_seconds",
        "sync_group_offsets_enabled",
    ):
        assert (
            len([note for note in notes if note.startswith((name, "not set")) and name in note])
            == 1
        )
    silent = (
        "topics.exclude=x\nreplication.factor=2\nsync.group.offsets.enabled=true\n"
        "emit.offset-syncs.enabled=false\n"
    ) + "".join(f"{key}=60\n" for key in flow_keys.INTERVALS)
    assert not [
        note
        for note in dedicated(ON + silent).report["notes"]
        if "is not set" in note or "not set" in note
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BASE, "clusters is all there is"),
        (
            f"{BASE}a -> b.enabled = true",
            "line 4: a is all of a key: .* write source->target without blanks",
        ),
        ("clusters = a\na.bootstrap.servers = x:1\n", "must list two clusters"),
        (
            "clusters = a, b\na->b.enabled = true\na.bootstrap.servers = x:1\n",
            "gives no b.bootstrap.servers",
        ),
        (f"{ON}replication.factor = many", "line 5: replication.factor must be a whole number"),
        (f"{ON}replication.factor = 0", "line 5: replication_factor must be at least 1"),
        (
            f"{ON}sync.topic.acls.enabled = yes",
            "line 5: sync.topic.acls.enabled must be true or false",
        ),
        (f"{ON}a->b.topics = ${{file:/x:topics}}", "a->b.topics is a reference"),
        (f"{ON}a->b.use.defaults.from = here", "use_defaults_from must be"),
        (
            ON.replace("a->", "us.a->")
            .replace("a, b", "us.a, b")
            .replace("\na.boot", "\nus.a.boot"),
            "the topology made of mm2.properties: clusters.us.a holds the separator",
        ),
    ],
)
def test_files_that_describe_nothing_that_can_run(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        dedicated(text)
    assert "\n" not in caught.value.message and caught.value.exit_code == 2


def test_two_files_of_one_dedicated_cluster() -> None:
    first, second = SourceFile("1", ON.encode()), SourceFile("2", f"{BASE}a->b.topics = x".encode())
    imported = import_files([first, second])
    assert imported.topology["flows"]["a->b"]["topics"] == ["x"]
    assert len([row for row in imported.report["carried"] if row["key"] == "clusters"]) == 2
    with pytest.raises(InputError, match=r"2, line 2: a.bootstrap.servers contradicts 1, line 2"):
        import_files([first, SourceFile("2", BASE.replace("a:1", "c:1").encode())])


KEYS = st.one_of(
    st.sampled_from(
        sorted(flow_keys.CARRIED | set(flow_keys.RENAMED) | set(client_keys.NOT_NEEDED))
    ),
    st.sampled_from(sorted(client_keys.CARRIED["consumer"] | client_keys.CARRIED["producer"])),
    st.sampled_from(
        [
            "tasks.max",
            "transforms.x",
            "ssl.truststore.location",
            "ssl.keystore.key",
            "sasl.x",
            "acks",
        ]
    ),
    st.from_regex(r"[a-z]{1,6}(\.[a-z]{1,6}){0,3}", fullmatch=True),
)
PLACES = [
    "",
    "a.",
    "b.",
    "a->b.",
    "b->a.",
    "a.consumer.",
    "b.producer.",
    "a->b.source.consumer.",
    "a->b.target.cluster.",
    "a->b.producer.override.",
    "consumer.",
    "a->b.admin.",
    "a->b.target.producer.",
    "c->a.",
    "a->b.consumer.override.",
]


def good_value(key: str) -> str:
    """A value that MirrorMaker 2 would accept for a key, so that most of what is drawn can be
    imported."""
    if key.endswith((".enabled", "enabled")):
        return "true"
    ends = {
        "use.defaults.from": "source",
        "security.protocol": "SSL",
        "bootstrap.servers": "h:1",
        "topic.location": "source",
    }
    return next((value for end, value in ends.items() if key.endswith(end)), "7")


@given(st.sets(st.tuples(st.sampled_from(PLACES), KEYS), max_size=12))
@settings(max_examples=300, deadline=None)
def test_nothing_is_dropped_silently(keys: set[tuple[str, str]]) -> None:
    given_keys = {place + key for place, key in keys} - {
        "clusters",
        "connector.class",
        "a->b.enabled",
    }
    text = ON + "".join(f"{key} = {good_value(key)}\n" for key in sorted(given_keys))
    draft = dedicated(text)
    told = [
        row["key"]
        for part in ("carried", "not_needed", "not_supported")
        for row in draft.report[part]
    ]
    assert given_keys <= set(told)
    for row in (*draft.report["not_needed"], *draft.report["not_supported"]):
        assert row["reason"]
    for row in draft.report["carried"]:
        for to in row["to"].split(", "):
            assert holds(draft.topology, to), row


# All settings of MirrorMaker 2 (docs/mm2.md, "Settings"), less what is carried: nobody's own key of
# MirrorMaker 2 may be called unknown.
KNOWN = [
    "name",
    "connector.class",
    "tasks.max",
    "enabled",
    "source.cluster.alias",
    "target.cluster.alias",
    "replication.policy.class",
    "replication.policy.separator",
    "admin.timeout.ms",
    "forwarding.admin.class",
    "metric.reporters",
    "key.converter",
    "value.converter",
    "header.converter",
    "transforms",
    "predicates",
    "errors.tolerance",
    "errors.retry.timeout",
    "errors.retry.delay.max.ms",
    "errors.log.enable",
    "config.action.reload",
    "tasks.max.enforce",
    "topic.filter.class",
    "config.property.filter.class",
    "consumer.poll.timeout.ms",
    "offset.lag.max",
    "use.incremental.alter.configs",
    "add.source.alias.to.metrics",
    "group.filter.class",
    "dedicated.mode.enable.internal.rest",
    "listeners",
    "rest.advertised.host.name",
    "key.converter.plugin.version",
    "exactly.once.support",
    "exactly.once.source.support",
    "offset.storage.topic",
    "offset.storage.replication.factor",
    "config.storage.replication.factor",
    "status.storage.partitions",
    "offset.flush.interval.ms",
    "scheduled.rebalance.max.delay.ms",
    "config.providers",
    "config.providers.file.class",
    "plugin.path",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
    "worker.x",
    "task.shutdown.graceful.timeout.ms",
    "group.id",
    "client.id",
]


@pytest.mark.parametrize("place", ["", "a->b.", "b."])
def test_no_setting_of_mirrormaker_2_is_unknown(place: str) -> None:
    names = [name for name in KNOWN if name != "connector.class" or place]
    values = {name: "true" if name == "enabled" else "x" for name in names}
    text = ON + "".join(f"{place}{name} = {value}\n" for name, value in values.items())
    unknown = [
        row["key"] for row in dedicated(text).report["not_supported"] if row["reason"] == UNKNOWN
    ]
    assert unknown == []


def mirrormaker1(consumer: str, producer: str, *names: str, **options: str) -> Imported:
    names = names or ("consumer.properties", "producer.properties")
    files = [
        SourceFile(name, text.encode())
        for name, text in zip(names, (consumer, producer), strict=True)
    ]
    return import_files(files, Options(**{"whitelist": "x", **options}))


@pytest.mark.parametrize(
    ("whitelist", "topics"),
    [("orders.*", ["orders.*"]), ("a,b|c", ["a", "b|c"]), ("'a, b'", ["a", "b"]), (".*", [".*"])],
)
def test_a_whitelist_is_cut_as_mirrormaker_1_does(whitelist: str, topics: list[str]) -> None:
    found = mirrormaker1("bootstrap.servers=a:1", "bootstrap.servers=b:1", whitelist=whitelist)
    flow = found.topology["flows"]["source->target"]
    assert (flow["topics"], flow["topics_exclude"], flow["policy"]) == (topics, [], "identity")


def test_mirrormaker_1_by_content_and_by_name() -> None:
    by_content = mirrormaker1(
        "bootstrap.servers=p:1\nacks=all", "bootstrap.servers=c:1\ngroup.id=g", "x", "y"
    )
    assert by_content.topology["clusters"]["source"]["bootstrap_servers"] == "c:1"
    renamed = mirrormaker1(
        "bootstrap.servers=a:1",
        "metadata.broker.list=b:1",
        source_alias="east",
        target_alias="west",
        num_streams="4",
    )
    assert list(renamed.topology["flows"]) == ["east->west"]
    assert renamed.topology["clusters"]["west"]["bootstrap_servers"] == "b:1"
    assert reason(renamed, "--num.streams", "not_needed")
    with pytest.raises(InputError, match="x could be the consumer's or the producer's file"):
        mirrormaker1("bootstrap.servers=p:1", "bootstrap.servers=c:1", "x", "y")
    with pytest.raises(InputError, match="one consumer and one producer file"):
        mirrormaker1("bootstrap.servers=p:1\nacks=1", "bootstrap.servers=c:1\nacks=1")
    with pytest.raises(InputError, match="gives no bootstrap.servers"):
        mirrormaker1("zookeeper.connect=z:1\ngroup.id=g", "bootstrap.servers=c:1\nacks=1")


def test_options_of_mirrormaker_1() -> None:
    files = [
        SourceFile("consumer", b"bootstrap.servers=a:1"),
        SourceFile("producer", b"bootstrap.servers=b:1"),
    ]
    found = import_files(files, Options(blacklist="x")).topology["flows"]["source->target"]
    assert found["topics_exclude"] == ["x"] and "topics" not in found
    with pytest.raises(InputError, match="give --whitelist"):
        import_files(files)
    with pytest.raises(InputError, match="exclude each other"):
        import_files(files, Options(whitelist="x", blacklist="y"))
    with pytest.raises(InputError, match="--whitelist belongs to MirrorMaker 1"):
        import_files([SourceFile("mm2.properties", ON.encode())], Options(whitelist="x"))
