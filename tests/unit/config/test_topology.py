"""The topology file: what it means, and that whatever is wrong with it is one sentence with file
and key."""

from pathlib import Path

import pytest

from mirrorlake.config.flow import Flow
from mirrorlake.config.topology import ResolvedFlow, Topology, load_topology
from mirrorlake.errors import TopologyError
from mirrorlake.naming.naming import Naming

FULL = """\
clusters:
  east: {bootstrap_servers: "127.0.0.1:19092"}
  west:
    bootstrap_servers: ["broker-1:9093", "broker-2:9093"]
    security:
      {protocol: SASL_SSL, mechanism: PLAIN, username: mirror, password: "${secret:kafka/west}",
       ca_file: w.pem}
    landing: {files_per_batch: 3}
lake: {path: ./lake}
defaults: {topics: "a, b|c", produce_tasks: 4}
flows:
  east->west: {topics: ["orders.*", "x{1,2}"], topics_exclude: [".*-tmp"], policy: identity}
  west->east: {enabled: false}
"""


def load(directory: Path, text: str) -> Topology:
    path = directory / "mirrorlake.yml"
    path.write_text(text, encoding="utf-8")
    return load_topology(path)


def refuse(directory: Path, text: str) -> TopologyError:
    with pytest.raises(TopologyError) as caught:
        load(directory, text)
    message = caught.value.message
    assert str(directory / "mirrorlake.yml") in message
    assert "\n" not in message and "pydantic" not in message and "validation error" not in message
    assert "hunter2" not in f"{message} {vars(caught.value)}"
    return caught.value


def test_a_whole_file(tmp_path: Path) -> None:
    topology = load(tmp_path, FULL)
    assert topology.directory == tmp_path
    assert topology.aliases == {"east", "west"}
    assert topology.lake.path == str(tmp_path / "lake")
    west = topology.clusters["west"]
    assert west.bootstrap_servers == "broker-1:9093,broker-2:9093"
    assert (west.landing.files_per_batch, west.landing.max_records_per_batch) == (3, 4_000_000)
    assert west.security is not None and west.security.password is not None
    assert west.security.password.get_secret_value() == "${secret:kafka/west}"
    assert west.security.ca_file == str(tmp_path / "w.pem")


def test_defaults_lie_beneath_every_flow(tmp_path: Path) -> None:
    topology = load(tmp_path, FULL)
    east, west = topology.flow("east->west"), topology.flow("west->east")
    assert (east.source, east.target, east.settings.topics) == (
        "east",
        "west",
        ("orders.*", "x{1,2}"),
    )
    assert (west.settings.topics, west.settings.produce_tasks) == (("a", "b|c"), 4)
    assert east.settings.produce_tasks == 4
    assert (east.settings.refresh_topics_interval_seconds, east.settings.delivery) == (
        10,
        "exactly_once",
    )
    assert east.settings.replication_factor is None


def test_a_flow_and_defaults_may_be_empty(tmp_path: Path) -> None:
    text = FULL.replace("defaults: {topics", "defaults:\n#").replace(
        "west->east: {enabled: false}", "west->east:"
    )
    topology = load(tmp_path, text)
    assert topology.flow("west->east").settings.topics == (".*",)
    assert topology.flow("west->east").settings.topics_exclude == (
        r"mm2.*\.internal",
        r".*\.replica",
        "__.*",
    )


def test_flows_by_name_and_by_source(tmp_path: Path) -> None:
    topology = load(tmp_path, FULL)
    assert [flow.name for flow in topology.active_flows()] == ["east->west"]
    assert [flow.name for flow in topology.active_flows(["east->west", "east->west"])] == [
        "east->west"
    ]
    assert {
        alias: [flow.name for flow in flows] for alias, flows in topology.sources().items()
    } == {"east": ["east->west"]}
    with pytest.raises(TopologyError, match=r"no flow esat->west; did you mean east->west\?"):
        topology.active_flows(["esat->west"])
    with pytest.raises(TopologyError, match="west->east is disabled"):
        topology.active_flows(["west->east"])


def test_a_file_whose_flows_are_all_disabled_has_none_to_do_anything_for(tmp_path: Path) -> None:
    some = load(tmp_path, FULL)
    assert some.require_flows() == some.active_flows() and some.require_flows([]) == []
    none = load(tmp_path, FULL.replace("policy: identity", "enabled: false"))
    assert none.active_flows() == []
    with pytest.raises(TopologyError, match=r"no flow .* set flows\.east->west\.enabled: true"):
        none.require_flows()


def test_policy_and_selection_of_a_flow(tmp_path: Path) -> None:
    topology = load(tmp_path, FULL)
    east, west = topology.flow("east->west"), topology.flow("west->east")
    assert east.naming == Naming("identity", "east", topology.aliases, directory=tmp_path)
    assert west.naming == Naming("default", "west", topology.aliases, directory=tmp_path)
    assert west.selection.selects("c")
    assert not west.selection.selects("d")
    assert not east.selection.selects("orders-tmp")


@pytest.mark.parametrize(
    "path", ["s3://bucket/lake", "abfss://$web@account/lake", "dbfs:/lake", "/data/lake"]
)
def test_only_relative_paths_are_resolved(tmp_path: Path, path: str) -> None:
    assert load(tmp_path, FULL.replace("./lake", f'"{path}"')).lake.path == path


def test_a_lake_in_unity_catalog(tmp_path: Path) -> None:
    text = FULL.replace(
        "{path: ./lake}", "{catalog: main, schema: replication, checkpoints: /Volumes/x}"
    )
    lake = load(tmp_path, text).lake
    assert (lake.path, lake.catalog, lake.schema_name, lake.checkpoints) == (
        None,
        "main",
        "replication",
        "/Volumes/x",
    )


def test_a_lake_at_a_path_with_names_in_a_catalog(tmp_path: Path) -> None:
    place = "{path: 's3://b/lake', catalog: main, schema: replication}"
    lake = load(tmp_path, FULL.replace("{path: ./lake}", place)).lake
    assert (lake.path, lake.catalog, lake.schema_name) == ("s3://b/lake", "main", "replication")


LAKE, EAST, FLOW = "{path: ./lake}", '"127.0.0.1:19092"}', "enabled: false"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("topics: [", "topcis: [", "unknown key flows.east->west.topcis; did you mean topics?"),
        (
            "topics_exclude",
            "topics.exclude",
            "unknown key flows.east->west.topics.exclude; did you mean topics_exclude?",
        ),
        ("{topics: ", "{topisc: ", "unknown key defaults.topisc; did you mean topics?"),
        ("lake:", "lkae:", "unknown key lkae; did you mean lake?"),
        (LAKE, "{path: x, schema_name: y}", "unknown key lake.schema_name; did you mean schema?"),
        (
            "bootstrap_servers: [",
            "bootstrap: [",
            "unknown key clusters.west.bootstrap; did you mean bootstrap_servers?",
        ),
        ("ca_file", "cafile", "unknown key clusters.west.security.cafile; did you mean ca_file?"),
        ("files_per_batch", "files", "unknown key clusters.west.landing.files; "),
        (
            "files_per_batch",
            "tasks_max",
            "unknown key clusters.west.landing.tasks_max; known are files_per_batch,",
        ),
        ("flows:", "directory: x\nflows:", "unknown key directory; "),
        (
            FLOW,
            "zzzz: 1",
            "unknown key flows.west->east.zzzz; known are checkpoints_topic_replication_factor, "
            "compression",
        ),
    ],
)
def test_an_unknown_key_names_the_nearest(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert sentence in refuse(tmp_path, FULL.replace(old, new, 1)).message


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("sync.topic.acls.enabled", "unknown key {key}; did you mean sync_topic_acls_enabled?"),
        ("use-defaults-from", "unknown key {key}; did you mean use_defaults_from?"),
        (
            "tasks_max",
            "{key} is a setting of MirrorMaker 2 that mirrorlake does not need: write "
            "produce_tasks",
        ),
        (
            "offset.lag.max",
            "{key} is a setting of MirrorMaker 2 that mirrorlake does not need: the offset map is "
            "exact",
        ),
        (
            "offset_syncs_source_producer_linger_ms",
            "{key} is a setting of MirrorMaker 2 that mirrorlake does not need: offset syncs",
        ),
        (
            "producer_override_linger_ms",
            "{key} is a setting of MirrorMaker 2 that mirrorlake does not need: client sett",
        ),
    ],
)
def test_settings_of_mirrormaker_say_what_to_do(tmp_path: Path, key: str, told: str) -> None:
    for where in ("flows.west->east", "defaults"):
        text = (
            FULL.replace(FLOW, f"{key}: true")
            if where != "defaults"
            else FULL.replace("{topics: ", f"{{{key}: 1, topics: ", 1)
        )
        error = refuse(tmp_path, text)
        assert told.format(key=f"{where}.{key}") in error.message


@pytest.mark.parametrize("setting", [name for name in Flow.model_fields if "_" in name])
def test_settings_in_mirrormakers_spelling_name_ours(tmp_path: Path, setting: str) -> None:
    error = refuse(tmp_path, FULL.replace(FLOW, f"{setting.replace('_', '.')}: true"))
    assert f"did you mean {setting}?" in error.message


def test_internal_topics_keep_the_dot_if_told_to(tmp_path: Path) -> None:
    def selects(settings: str, topic: str) -> bool:
        topology = load(
            tmp_path,
            FULL.replace(FLOW, f"topics: ['.*'], replication_policy_separator: _{settings}"),
        )
        return topology.flow("west->east").selection.selects(topic)

    assert selects("", "x.checkpoints.internal") and not selects("", "x_checkpoints_internal")
    off = ", replication_policy_internal_topic_separator_enabled: false"
    assert selects(off, "x_checkpoints_internal") and not selects(off, "x.checkpoints.internal")


@pytest.mark.parametrize(
    ("written", "endpoint", "seconds"),
    [
        ('"http://collector:4318"', "http://collector:4318/v1/metrics", 15),
        ('"http://collector:4318/"', "http://collector:4318/v1/metrics", 15),
        ('"https://otlp.example.org/a/b"', "https://otlp.example.org/a/b", 15),
        ('{endpoint: "http://c:1", interval_seconds: 60}', "http://c:1/v1/metrics", 60),
    ],
)
def test_where_metrics_are_sent(tmp_path: Path, written: str, endpoint: str, seconds: int) -> None:
    otlp = load(tmp_path, f"{FULL}\nmetrics: {{otlp: {written}}}\n").metrics.otlp
    assert otlp is not None and (otlp.endpoint, otlp.interval_seconds) == (endpoint, seconds)


@pytest.mark.parametrize("written", ["collector:4318", "4318", "http://", "grpc://collector:4317"])
def test_no_address_of_a_collector(tmp_path: Path, written: str) -> None:
    error = refuse(tmp_path, f"{FULL}\nmetrics: {{otlp: '{written}'}}\n")
    assert "metrics.otlp" in error.message and "write http://HOST:4318" in error.message


def test_what_is_paused(tmp_path: Path) -> None:
    def west(paused: str) -> ResolvedFlow:
        return load(tmp_path, FULL.replace(FLOW, f"paused: {paused}")).flow("west->east")

    assert not west("false").paused and not west("false").pauses("orders")
    assert west("true").paused and west("true").pauses("orders")
    some = west('["orders.*", bills]')
    assert not some.paused
    assert [name for name in ("orders", "orders2", "bills", "bills2") if some.pauses(name)] == [
        "orders",
        "orders2",
        "bills",
    ]
    assert west("orders").pauses("orders")


@pytest.mark.parametrize("policy", ["default", "identity", "policy:P", "my.naming_2.module:Policy"])
def test_policies_that_can_be_written(tmp_path: Path, policy: str) -> None:
    text = FULL.replace("policy: identity", f'policy: "{policy}"')
    assert load(tmp_path, text).flow("east->west").settings.policy == policy


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (FLOW, 'enabled: "no"', "flows.west->east.enabled must be true or false, not a text"),
        (FLOW, "topics: 7", "flows.west->east.topics must be a list of texts, not a whole number"),
        (FLOW, "topics: [7]", "flows.west->east.topics must be a list of texts"),
        (
            FLOW,
            "produce_tasks: true",
            "flows.west->east.produce_tasks must be a whole number, not true or false",
        ),
        (FLOW, "produce_tasks: 0", "flows.west->east.produce_tasks must be at least 1"),
        (
            FLOW,
            "replication_factor: 40000",
            "flows.west->east.replication_factor must be at most 32767",
        ),
        (
            FLOW,
            "policy: dfault",
            "flows.west->east.policy must be default, identity or package.module:Class",
        ),
        (
            FLOW,
            "policy: my.module",
            "flows.west->east.policy must be default, identity or package.module:Class",
        ),
        (
            FLOW,
            "policy: 'my..x:P'",
            "flows.west->east.policy must be default, identity or package.module:Class",
        ),
        (
            FLOW,
            "policy: 'a:B\\n'",
            "flows.west->east.policy must be default, identity or package.module:Class",
        ),
        (FLOW, "policy: 7", "flows.west->east.policy must be a text, not a whole number"),
        (
            FLOW,
            "replication_policy_separator: ''",
            "flows.west->east.replication_policy_separator must be 1 to 16",
        ),
        (
            FLOW,
            "replication_policy_separator: ' '",
            "flows.west->east.replication_policy_separator must be 1 to 16",
        ),
        (FLOW, "paused: 7", "flows.west->east.paused must be true, false or a list of patterns"),
        (FLOW, "paused: [7]", "flows.west->east.paused must be true, false or a list of patterns"),
        (FLOW, "paused: ['(']", "flows.west->east.paused holds the invalid regular expression '('"),
        (
            "produce_tasks: 4",
            "paused: 0.5",
            "defaults.paused must be true, false or a list of patterns",
        ),
        (
            FLOW,
            "provenance: header",
            "flows.west->east.provenance must be 'none', 'headers' or 'strip'",
        ),
        (
            FLOW,
            "use_defaults_from: both",
            "flows.west->east.use_defaults_from must be 'source' or 'target'",
        ),
        (
            FLOW,
            "refresh_groups_interval_seconds: 0",
            "refresh_groups_interval_seconds must be at least 1",
        ),
        (
            FLOW,
            "emit_heartbeats_interval_seconds: 700000",
            "interval_seconds must be at most 604800",
        ),
        (
            "produce_tasks: 4",
            "produce_tasks: x",
            "defaults.produce_tasks must be a whole number, not a text",
        ),
        (EAST, '"b:1", landing: 5}', "clusters.east.landing must be a mapping, not a whole number"),
        (
            EAST,
            '"b:1", admin: {x.y: 0.5}}',
            "clusters.east.admin.x.y must be a string, a whole number, true or false",
        ),
        (EAST, '""}', "clusters.east.bootstrap_servers is empty"),
        (
            ":19092",
            ":119092",
            "clusters.east.bootstrap_servers names port 119092 in 127.0.0.1:119092; ports go up to",
        ),
        ('bootstrap_servers: "127.0.0.1:19092"', "", "clusters.east.bootstrap_servers is missing"),
        (
            "mechanism: PLAIN",
            "mechanism: hunter2",
            "clusters.west.security.mechanism must be 'PLAIN', 'SCRAM",
        ),
        (
            "username: mirror, password",
            "password",
            "clusters.west.security needs username with protocol SASL_SSL",
        ),
        (
            '"${secret:kafka/west}"',
            "[hunter2]",
            "clusters.west.security.password must be a text, not a list",
        ),
        (
            "SASL_SSL",
            "SASL_PLAINTEXT",
            "clusters.west.security gives ca_file, which protocol SASL_PLAINTEXT would never",
        ),
        (
            "SASL_SSL",
            "SSL",
            "clusters.west.security gives mechanism and username and password, which protocol SSL",
        ),
        (
            "ca_file: w.pem",
            "key_file: k",
            "clusters.west.security needs certificate_file and key_file together",
        ),
        (
            "127.0.0.1:19092",
            "https://b:1",
            "east.bootstrap_servers names a URL, https://…; an addr",
        ),
        (LAKE, "./lake", "lake must be a mapping, not a text; write {path: ./lake}"),
        (
            '{bootstrap_servers: "127.0.0.1:19092"}',
            "'b:1'",
            'clusters.east must be a mapping, not a text; write {bootstrap_servers: "HOST:9092"}',
        ),
        (LAKE, "{path: ~nobody.here/lake}", "lake.path names ~nobody.here, a home that this mach"),
        (LAKE, "{path: $HOME/lake}", "lake.path names $HOME, and nothing is put in its place: wr"),
        (LAKE, '{path: "${env:LAKE}/x"}', "lake.path names ${env:LAKE}, and nothing is put in its"),
        (
            FLOW,
            "topics: ['*']",
            "regular expression '*': nothing to repeat at position 0; write .*",
        ),
        (FLOW, "topics: a, b", "unknown key flows.west->east.b, which has no value; a list of"),
        (FLOW, "topics: *", "; a text that begins with * or & stands between quotes"),
        ('"${secret:kafka/west}"', "${env:P}", "; a text with { or , in it stands between quotes"),
        (
            "  east:",
            "\teast:",
            "in line 2: found character '\\t' that cannot start any token; indent",
        ),
        (
            "east->west",
            "east -> west",
            "flows.east -> west has blanks beside its arrow; write east",
        ),
        (LAKE, "{}", "lake needs path, or catalog and schema, or all three"),
        (LAKE, "{path: x, catalog: y}", "lake needs path, or catalog and schema, or all three"),
        (LAKE, "{path: x, schema: z}", "lake needs path, or catalog and schema, or all three"),
        (LAKE, "{catalog: y}", "lake needs path, or catalog and schema, or all three"),
        (f"lake: {LAKE}\n", "", "lake is missing"),
        (
            "orders.*",
            "orders.(*",
            "flows.east->west.topics holds the invalid regular expression 'orders.(*'",
        ),
        (
            ".*-tmp",
            "(?i)x",
            "flows.east->west.topics_exclude holds the invalid regular expression '(?i)x'",
        ),
        ("  east->west", "  east-west", "flows.east-west is not a flow name; write source->target"),
        (
            "  east->west",
            "  esat->west",
            "flows.esat->west names the unknown cluster esat; did you mean east?",
        ),
        (
            "  east->west",
            "  east->wset",
            "flows.east->wset names the unknown cluster wset; did you mean west?",
        ),
        ("  east->west", "  east->east", "flows.east->east has the same cluster on both ends"),
        ("  east->west", "  west->east", "in line 13: key west->east is given twice"),
        ("flows:", "flows: {}\ndefaults:", "is given twice"),
        ("  east:", "  a b:", "clusters.a b is not an alias that a topic name can hold"),
        ("  east:", "  us.east:", "clusters.us.east holds the separator '.' of flow"),
        ("  east:", '  "east ":', "clusters.'east ' is no alias"),
        ("lake: {", "lake: [", "is not valid YAML in line 9"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in FULL
    text = FULL.replace(old, new, 1)
    if new in ("  us.east:", "  a b:"):
        alias = new.strip(" :")
        text = text.replace("east->west", f"{alias}->west").replace("west->east", f"west->{alias}")
        text = text.replace("policy: identity", "policy: default")
    assert sentence in refuse(tmp_path, text).message


ALIASES = """
clusters: {A: {bootstrap_servers: a}, B: {bootstrap_servers: b}, C: {bootstrap_servers: c}}
lake: {path: ./lake}
flows: {A->B: {FLOW}, C->A: {enabled: false}}
"""


@pytest.mark.parametrize(
    ("first", "second", "flow", "sentence"),
    [
        ("east", "west dc.1", "", None),  # no name of a topic holds a target's alias
        ("us-east", "us-west", "policy: identity, replication_policy_separator: '-'", None),
        (
            "a b",
            "west",
            "policy: identity, heartbeats_replication_enabled: false, emit_checkpoints_enabled: "
            "false",
            None,
        ),
        ("a b", "west", "policy: identity", "not an alias that a topic name can hold"),
        ("us-east", "west", "replication_policy_separator: '-'", "holds the separator '-'"),
        (
            "us-east",
            "us",
            "policy: identity, replication_policy_separator: '-'",
            "begins with another alias",
        ),
    ],
)
def test_an_alias_is_taken_where_nothing_is_ambiguous(
    tmp_path: Path, first: str, second: str, flow: str, sentence: str | None
) -> None:
    text = ALIASES.replace("A", first).replace("B", second).replace("FLOW", flow)
    if sentence is not None:
        assert sentence in refuse(tmp_path, text).message
        return
    path = tmp_path / "mirrorlake.yml"
    path.write_text(text, encoding="utf-8")
    found = load_topology(path).flow(f"{first}->{second}")
    name = found.target_topic("heartbeats")
    assert found.naming.is_heartbeats(name) and found.naming.source_of(name) == first


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("[]", "must hold a mapping"),
        ("a: \x01", "is not valid YAML"),
        (FULL[: FULL.index("flows:")], "flows is missing"),
        (FULL[: FULL.index("flows:")] + "flows: {}\n", "flows is empty"),
        (FULL[: FULL.index("flows:")] + "flows:\n", "flows must be a mapping"),
    ],
)
def test_files_without_content(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refuse(tmp_path, text).message


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        TopologyError, match=r"there is no topology file .*none\.yml; .*mirrorlake init.* -c"
    ):
        load_topology(tmp_path / "none.yml")
    (tmp_path / "none.yaml").write_text(FULL)
    with pytest.raises(TopologyError, match=r"none\.yaml is there: name it with -c .*/none\.yaml"):
        load_topology(tmp_path / "none.yml")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TopologyError, match=f"no topology file mine.yml in {tmp_path}; create"):
        load_topology(Path("mine.yml"))
    with pytest.raises(TopologyError, match="cannot be read: Is a directory"):
        load_topology(tmp_path)
    (tmp_path / "mirrorlake.yml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(TopologyError, match="not UTF-8"):
        load_topology(tmp_path / "mirrorlake.yml")


def test_no_secret_shows_in_an_error(tmp_path: Path) -> None:
    for old, new in (
        ("SASL_SSL", "hunter2"),
        ("w.pem}", "w.pem, hunter: hunter2}"),
        ("w.pem}", "w.pem, key_file: k}"),
    ):
        refuse(tmp_path, FULL.replace("${secret:kafka/west}", "hunter2").replace(old, new, 1))
