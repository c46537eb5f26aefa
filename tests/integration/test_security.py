"""Every security mode end to end, what is refused and how, the least ACLs, and that no secret shows
anywhere."""

import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import pytest
import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.checks.access import (
    access_problems,
    member_problems,
    own_topic_problems,
    transaction_problems,
)
from mirrorlake.checks.problem import Problem
from mirrorlake.config.client_settings import JAVA_CONSUMER
from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.python_log import PythonLog
from mirrorlake.kafka.records import first_rows
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.translate import translate
from mirrorlake.spark.jars import connector_jars
from tests.support.commands import Answer
from tests.support.kafka import create_topic, numbered, read_topic, record_count, write
from tests.support.lake_rows import now_of
from tests.support.replication import FLOW, finish, lake_of, replicate_once, replicating, start_run
from tests.support.secure import EVERYTHING, USER, SecureClusters, grant, secure_clusters
from tests.support.waiting import until

DOCS = Path(__file__).parents[2] / "docs" / "security.md"
BACK = "west->east"
#: Control off: what is left is records and topics.
RECORDS_ONLY = {
    "sync_topic_configs_enabled": False,
    "sync_topic_acls_enabled": False,
    "emit_checkpoints_enabled": False,
    "sync_group_offsets_enabled": False,
    "emit_heartbeats_enabled": False,
}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureClusters]:
    with secure_clusters(tmp_path_factory.mktemp("secure")) as clusters:
        yield clusters


@pytest.fixture(autouse=True)
def _environment(secure: SecureClusters, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in secure.environment().items():
        monkeypatch.setenv(name, value)


def topology(
    folder: Path, east: Mapping[str, Any], west: Mapping[str, Any], flows: Mapping[str, Any]
) -> Path:
    path = folder / "mirrorlake.yml"
    defaults = {
        "emit_heartbeats_enabled": False
    }  # a right that most of these principals are not given
    clusters = {"east": east, "west": west}
    document = {
        "clusters": clusters,
        "lake": {"path": "./lake"},
        "defaults": defaults,
        "flows": flows,
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def documented_acls(kind: str) -> list[dict[str, str]]:
    """The block of docs/security.md that lists ACLs of a kind."""
    match = re.search(
        rf"```yaml acls: {kind}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL
    )
    assert match is not None
    return list(yaml.safe_load(match[1]))


class CommandLines:
    """Notes the command lines of everything that a process starts, while it runs."""

    def __init__(self, pid: int) -> None:
        self.seen: set[str] = set()
        self._stop = Event()
        self._thread = Thread(target=self._watch, args=(pid,), daemon=True)
        self._thread.start()

    def _watch(self, pid: int) -> None:
        while not self._stop.wait(0.2):
            try:
                parent = psutil.Process(pid)
                for process in (parent, *parent.children(recursive=True)):
                    self.seen.add(" ".join(process.cmdline()))
            except psutil.Error:
                continue

    def end(self) -> set[str]:
        self._stop.set()
        self._thread.join()
        return self.seen


def run_once(path: Path) -> tuple[int, str]:
    """`mirrorlake run --once`: its exit code, and all that its processes had on their command
    lines."""
    run = start_run(path, "--once")
    watch = CommandLines(run.pid)
    code = finish(run, 400)
    return code, "\n".join(watch.end())


def said(path: Path) -> str:
    """What a run printed."""
    return (path.parent / "run.log").read_text(encoding="utf-8")


MODES = [
    ("PLAIN", "SCRAM-SHA-256+TLS"),
    ("SSL", "mTLS"),
    ("SCRAM-SHA-512", "OAUTHBEARER+TLS"),
    ("OAUTHBEARER", "PLAIN+TLS"),
    ("SCRAM-SHA-256", "SCRAM-SHA-512+TLS"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("east_mode", "west_mode"), MODES, ids=[" ".join(pair) for pair in MODES])
def test_modes(
    secure: SecureClusters,
    spark: SparkSession,
    topic_name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    east_mode: str,
    west_mode: str,
) -> None:
    """Flows both ways, so that each mode is read from, asked and written to."""
    path = both_ways(secure, topic_name, tmp_path, (east_mode, west_mode))
    replicate_once(spark, path)
    assert_mirrored_without_secrets(secure, spark, path, topic_name, caplog.text)


@pytest.mark.slow
@pytest.mark.parametrize("session", [False, True], ids=["no session", "session"])
def test_no_process_of_a_run_shows_a_secret(
    secure: SecureClusters, spark: SparkSession, topic_name: str, tmp_path: Path, session: bool
) -> None:
    """Of few records a run with an end opens no Spark session; where it opens one, Java and workers
    are looked at."""
    landing = {"small_batch_records": 0} if session else {}
    path = both_ways(secure, topic_name, tmp_path, MODES[0], landing=landing)
    code, lines = run_once(path)
    assert code == 0, said(path)
    assert ("java" in lines) is session
    assert_mirrored_without_secrets(secure, spark, path, topic_name, lines)


def both_ways(
    secure: SecureClusters, topic: str, folder: Path, modes: tuple[str, str], **settings: object
) -> Path:
    """A topology of two flows between clusters that are reached by these modes, and records in
    both."""
    flow = {"topics": [topic], **RECORDS_ONLY}
    east, west = (
        secure.cluster(name, mode) | settings
        for name, mode in zip(("east", "west"), modes, strict=True)
    )
    for name in ("east", "west"):
        grant(secure.admin(name), EVERYTHING)
        create_topic(secure.open_door(name), topic, 2)
        write(secure.open_door(name), topic, numbered(20, 2))
    return topology(folder, east, west, {FLOW: flow, BACK: flow})


def assert_mirrored_without_secrets(
    secure: SecureClusters, spark: SparkSession, path: Path, topic: str, lines: str
) -> None:
    """What `both_ways` wrote is on the other side, and no secret is in `lines` or in what the run
    left."""
    for name, mirror in (("west", f"east.{topic}"), ("east", f"west.{topic}")):
        assert [len(partition) for partition in read_topic(secure.open_door(name), mirror)] == [
            10,
            10,
        ]
    lake = lake_of(spark, path)
    for name in (FLOW, BACK):
        assert translate(now_of(lake), name, topic, 1, 7).offset == 7
    tables = "\n".join(str(lake.ask_table(name)) for name in TABLES)
    assert_no_secret(secure, path.parent, lines, tables)


def assert_no_secret(secure: SecureClusters, folder: Path, lines: str, tables: str = "") -> None:
    """No secret on command lines, in rows, or in any file that a run left: its output, tables,
    checkpoints."""
    files = [(str(path), path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
    for where, data in [("a command line", lines.encode()), ("a table", tables.encode()), *files]:
        for secret in secure.secrets():
            assert secret not in data, f"a secret shows in {where}"


REFUSED: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "wrong password": (
        "SASL",
        {
            "protocol": "SASL_PLAINTEXT",
            "mechanism": "PLAIN",
            "username": USER,
            "password": "${secret:kafka/wrong}",
        },
        (
            "cluster east at",
            "refused the credentials of principal mirror",
            "Invalid username or password",
        ),
    ),
    "wrong SCRAM password": (
        "SASLTLS",
        {
            "protocol": "SASL_SSL",
            "mechanism": "SCRAM-SHA-512",
            "username": USER,
            "password": "${secret:kafka/wrong}",
            "ca_file": "{ca}",
        },
        ("refused the credentials of principal mirror", "SCRAM-SHA-512"),
    ),
    "wrong client secret": (
        "SASL",
        {
            "protocol": "SASL_PLAINTEXT",
            "mechanism": "OAUTHBEARER",
            "token_endpoint": "{tokens}",
            "client_id": USER,
            "client_secret": "${secret:kafka/wrong}",
        },
        ("gave principal mirror no token", "invalid_client", "client_secret"),
    ),
    "expired certificate": (
        "EXPIRED",
        {"protocol": "SSL", "ca_file": "{ca}"},
        ("cluster east at", "its certificate is not trusted: certificate has expired", "ca_file"),
    ),
    "unknown authority": (
        "TLS",
        {"protocol": "SSL", "ca_file": "{other}"},
        ("its certificate is not trusted", "issuer certificate", "ca_file"),
    ),
    "no client certificate": (
        "MTLS",
        {"protocol": "SSL", "ca_file": "{ca}"},
        ("refused an anonymous client", "TLS"),
    ),
    "a CA that is none": (
        "TLS",
        {"protocol": "SSL", "ca_file": "${secret:kafka/mirror}"},
        ("${secret:kafka/mirror}, a PEM file of cluster east",),
    ),
    "a missing secret": (
        "SASL",
        {
            "protocol": "SASL_PLAINTEXT",
            "mechanism": "PLAIN",
            "username": USER,
            "password": "${secret:kafka/none}",
        },
        ("${secret:kafka/none} has no value", "put it into the file", "/kafka/none"),
    ),
}
FEW = ("wrong password", "unknown authority", "a missing secret")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case in FEW else pytest.mark.wide("test_refused_logins"))
        for case in REFUSED
    ],
)
def test_refused_logins(secure: SecureClusters, tmp_path: Path, case: str) -> None:
    door, security, parts = REFUSED[case]
    files = {
        "{ca}": secure.authority.file,
        "{other}": secure.other_authority.file,
        "{tokens}": secure.tokens.url,
    }
    block = {key: str(files.get(value, value)) for key, value in security.items()}
    topology(
        tmp_path, secure.through("east", door, **block), secure.cluster("west", "SSL"), {FLOW: {}}
    )
    answer = Answer(tmp_path, "plan")
    answer.assert_one_sentence(*parts)
    assert answer.seconds < 30  # a client that is not refused for good asks for a minute
    for secret in secure.secrets():
        assert secret.decode() not in answer.err + answer.out


@pytest.mark.slow
@pytest.mark.parametrize("session", [False, True], ids=["no session", "session"])
def test_the_documented_acls_are_enough_and_none_too_many(
    secure: SecureClusters, tmp_path: Path, session: bool
) -> None:
    landing = {"landing": {"small_batch_records": 0}} if session else {}
    acls = documented_acls("records")
    for name, side in (("east", "source"), ("west", "target")):
        grant(secure.admin(name), [acl for acl in acls if acl["cluster"] == side])
    path = topology(
        tmp_path,
        secure.cluster("east", "SCRAM-SHA-512") | landing,
        secure.cluster("west", "SCRAM-SHA-512"),
        {FLOW: {"topics": [f"orders-.*-{session}"], **RECORDS_ONLY}},
    )
    made, grown = topics = [f"orders-{place}-{session}" for place in ("eu", "us")]
    create_topic(secure.open_door("east"), made, 2)
    # One mirror is there with too few partitions, so that it has to grow.
    create_topic(secure.open_door("east"), grown, 2)
    create_topic(secure.open_door("west"), f"east.{grown}", 1)
    for topic in topics:
        write(secure.open_door("east"), topic, numbered(20, 2))
    seen = {name: len(secure.authorizer_lines(name)) for name in ("east", "west")}
    assert problems(path) == []
    assert run_once(path)[0] == 0, said(path)
    for topic in topics:
        assert record_count(secure.open_door("west"), f"east.{topic}") == 20
    for name, side in (("east", "source"), ("west", "target")):
        lines = secure.authorizer_lines(name)[seen[name] :]
        denied = [line for line in lines if " is Denied " in line]
        assert not denied, "\n".join(denied)
        for acl in acls:
            if acl["cluster"] == side:
                assert any(_by_rule(line, acl) for line in lines), f"{acl} was not needed"


def _by_rule(line: str, acl: Mapping[str, str]) -> bool:
    """Whether the authorizer allowed the very operation of an ACL by that ACL."""
    asked, _, rule = line.partition("based on rule")
    resource, operation = f"resourceType={acl['resource']}", f"operation={acl['operation']},"
    named = f"{resource}, resourceName={acl['name']}, patternType={acl['pattern']}"
    return f" operation = {acl['operation']} from" in asked and named in rule and operation in rule


def test_single_records_are_read_without_a_right_on_a_group(
    secure: SecureClusters, tmp_path: Path
) -> None:
    """As who compares logs, and `verify` without the compiled part, read them; of whom the group is
    refused."""
    topic = "orders-no-group"
    create_topic(secure.open_door("east"), topic)
    write(secure.open_door("east"), topic, numbered(10))
    grant(
        secure.admin("east"),
        [acl for acl in documented_acls("records") if acl["cluster"] == "source"],
    )
    path = topology(
        tmp_path,
        secure.cluster("east", "PLAIN"),
        secure.cluster("west", "PLAIN"),
        {FLOW: {"topics": [topic]}},
    )
    settings, key = Connections(load_topology(path)).client("east", "consumer"), (topic, 0)
    assert first_rows("east", settings, {key: 3})[key].offset == 3
    log = PythonLog({**settings, "group.id": "mirrorlake-verify-east"})
    try:
        assert sum(batch.num_rows for _, batch in log.read({key: (2, 10)})) == 8
    finally:
        log.close()


def problems(path: Path) -> list[Problem]:
    loaded = load_topology(path)
    return access_problems(Connections(loaded), loaded.active_flows())


LACKING = {
    "describe": (
        "source",
        "READ",
        "TOPIC",
        "principal mirror may not DESCRIBE and READ topic {t} on cluster east",
    ),
    "write": (
        "target",
        "WRITE",
        "TOPIC",
        "principal mirror may not WRITE topic east.{t} on cluster west",
    ),
    "position": (
        "target",
        "READ",
        "TOPIC",
        "principal mirror may not READ topic east.{t} on cluster west",
    ),
    "create": (
        "target",
        "CREATE",
        "TOPIC",
        "principal mirror may not CREATE topic east.{t} on cluster west",
    ),
    "group": (
        "target",
        "READ",
        "GROUP",
        "principal mirror may not READ group mirrorlake-x-east->west on cluster west",
    ),
    "transactional id": (
        "target",
        "WRITE",
        "TRANSACTIONAL_ID",
        "principal mirror may not WRITE transactional ids mirrorlake-x-east->west-* on cluster "
        "west",
    ),
}


def lacking(secure: SecureClusters, case: str, extra: list[dict[str, str]]) -> None:
    """Grant the documented ACLs, except one; `extra` besides at the source."""
    side, operation, resource, _ = LACKING[case]
    for name, which in (("east", "source"), ("west", "target")):
        kept = [
            acl
            for acl in documented_acls("records")
            if acl["cluster"] == which
            and (acl["cluster"], acl["operation"], acl["resource"]) != (side, operation, resource)
        ]
        grant(secure.admin(name), [*kept, *(extra if which == "source" else [])])


@pytest.mark.parametrize("case", LACKING)
def test_a_lacking_right_is_named(secure: SecureClusters, tmp_path: Path, case: str) -> None:
    topic = f"orders-{case.replace(' ', '-')}"
    create_topic(secure.open_door("east"), topic)
    if case != "create":
        create_topic(secure.open_door("west"), f"east.{topic}")
    lacking(secure, case, [])
    path = topology(
        tmp_path,
        secure.cluster("east", "PLAIN"),
        secure.cluster("west", "PLAIN"),
        {FLOW: {"topics": [topic]}},
    )
    connections, flow = Connections(load_topology(path)), load_topology(path).flow(FLOW)
    found = [
        *access_problems(connections, [flow]),
        *transaction_problems(connections, flow, "mirrorlake-x-east->west"),
    ]
    assert [problem.sentence for problem in found] == [LACKING[case][3].format(t=topic)]
    assert "docs/security.md" in found[0].fix


def test_a_topic_that_may_be_seen_but_not_read_is_named(
    secure: SecureClusters, tmp_path: Path
) -> None:
    create_topic(secure.open_door("east"), "orders-seen")
    describe = {
        "operation": "DESCRIBE",
        "resource": "TOPIC",
        "pattern": "PREFIXED",
        "name": "orders-seen",
    }
    lacking(secure, "describe", [describe])
    path = topology(
        tmp_path,
        secure.cluster("east", "PLAIN"),
        secure.cluster("west", "PLAIN"),
        {FLOW: {"topics": [".*seen"]}},
    )
    found = problems(path)
    assert [(problem.sentence, problem.topic) for problem in found] == [
        ("principal mirror may not READ topic orders-seen on cluster east", "orders-seen")
    ]


def test_what_mirrormaker_2s_own_topics_lack_is_a_note(
    secure: SecureClusters, tmp_path: Path
) -> None:
    """Records are mirrored without heartbeats and published checkpoints, so it refuses nothing."""
    seen = {
        "operation": "DESCRIBE",
        "resource": "TOPIC",
        "pattern": "LITERAL",
        "name": "heartbeats",
    }
    for name, side in (("east", "source"), ("west", "target")):
        acls = [
            acl
            for acl in documented_acls("records")
            if acl["cluster"] == side and acl["operation"] != "CREATE"
        ]
        grant(secure.admin(name), [*acls, seen] if side == "source" else acls)
    create_topic(secure.open_door("east"), "heartbeats")
    flow = {FLOW: {"topics": ["orders.*"], "emit_heartbeats_enabled": True}}
    path = topology(
        tmp_path, secure.cluster("east", "PLAIN"), secure.cluster("west", "PLAIN"), flow
    )
    loaded = load_topology(path)
    found = own_topic_problems(Connections(loaded), loaded.flow(FLOW))
    assert {problem.severity for problem in found} == {"note"}
    assert [problem.sentence for problem in found] == [
        "principal mirror may not WRITE topic heartbeats on cluster east",
        "principal mirror may not CREATE topic heartbeats on cluster west",
        "principal mirror may not CREATE topic east.checkpoints.internal on cluster west",
    ]
    for name in ("east", "west"):
        grant(secure.admin(name), EVERYTHING)
    assert own_topic_problems(Connections(loaded), loaded.flow(FLOW)) == []


def test_what_a_member_of_the_groups_of_workers_lacks_is_named(
    secure: SecureClusters, tmp_path: Path
) -> None:
    """With the least ACLs of records alone, and with the row of the page for `availability`."""
    for name, side in (("east", "source"), ("west", "target")):
        grant(
            secure.admin(name),
            [acl for acl in documented_acls("records") if acl["cluster"] == side],
        )
    path = topology(
        tmp_path,
        secure.cluster("east", "PLAIN"),
        secure.cluster("west", "PLAIN"),
        {FLOW: {"topics": ["orders.*"]}},
    )
    path.write_text(f"{path.read_text(encoding='utf-8')}\navailability: kafka\n", encoding="utf-8")
    loaded = load_topology(path)
    flow = loaded.flow(FLOW)
    found = member_problems(Connections(loaded), flow, "0123abcd")
    assert [problem.sentence for problem in found] == [
        "principal mirror may not CREATE topic __mirrorlake_workers on cluster west",
        "principal mirror may not CREATE topic __mirrorlake_workers on cluster east",
        "principal mirror may not READ group mirrorlake-0123abcd-east->->workers on cluster east",
    ]
    assert {problem.severity for problem in found} == {"refuse"}
    topic = {"resource": "TOPIC", "pattern": "LITERAL", "name": "__mirrorlake_workers"}
    group = {"resource": "GROUP", "pattern": "PREFIXED", "name": "mirrorlake-", "operation": "READ"}
    for name, more in (("east", [group]), ("west", [group])):
        rights = [{**topic, "operation": operation} for operation in ("READ", "CREATE")]
        grant(secure.admin(name), [*rights, *more])
    assert member_problems(Connections(loaded), flow, "0123abcd") == []
    for name in ("east", "west"):
        grant(secure.admin(name), EVERYTHING)


@pytest.mark.wide("test_a_topic_that_may_be_seen_but_not_read_is_named")
@pytest.mark.parametrize(
    ("side", "right", "kind", "sentence"),
    [
        ("west", "WRITE", "topic_refused", "mirror may not WRITE topic east.{lost};"),
        pytest.param(
            "west",
            "READ",
            "topic_refused",
            "mirror may not READ topic east.{lost};",
            marks=pytest.mark.slow,
        ),
        ("east", "DESCRIBE", "source_refused", "topic {lost} is not shown by cluster east"),
        pytest.param(
            "east",
            "READ",
            "source_refused",
            "the cluster does not allow to read the topic",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_right_that_is_revoked_while_it_runs_stops_that_topic_alone(
    secure: SecureClusters,
    spark: SparkSession,
    topic_name: str,
    tmp_path: Path,
    *,
    side: str,
    right: str,
    kind: str,
    sentence: str,
) -> None:
    """Of two topics that one producer writes; with the right back it goes on by itself."""
    kept, lost = topics = [f"{topic_name}-{name}" for name in ("kept", "lost")]
    for name in ("east", "west"):
        grant(secure.admin(name), EVERYTHING)
        for topic in topics:
            create_topic(secure.open_door(name), topic if name == "east" else f"east.{topic}", 2)
    flow = {"topics": topics, "produce_tasks": 1, **RECORDS_ONLY}
    path = topology(
        tmp_path, secure.cluster("east", "PLAIN"), secure.cluster("west", "PLAIN"), {FLOW: flow}
    )

    def write_both(first: int) -> None:
        for topic in topics:
            write(secure.open_door("east"), topic, numbered(50, 2, first))

    def there(topic: str) -> int:
        return sum(
            len(records) for records in read_topic(secure.open_door("west"), f"east.{topic}")
        )

    def told() -> list[tuple[str, str, str | None, int | None]]:
        rows = mirrorlake.open(path).rows(
            "SELECT kind, detail, topic, partition FROM open_incidents"
        )
        return [tuple(row.values()) for row in rows]

    with replicating(spark, path):
        write_both(0)
        until(lambda: (there(kept), there(lost)) == (50, 50))
        with denied(secure.admin(side), right, f"east.{lost}" if side == "west" else lost):
            until(lambda: side == "west" or told(), "landing hears of it by itself")
            write_both(50)
            write_both(100)
            until(lambda: there(kept) == 150 and told())
            assert there(lost) == 50
            for told_kind, detail, topic, _ in told():
                assert (told_kind, topic) == (kind, lost)
                assert sentence.format(lost=lost) in detail, detail
        until(lambda: there(lost) == 150 and told() == [])
    assert there(kept) == 150


@contextmanager
def denied(admin: AdminClient, right: str, topic: str) -> Iterator[None]:
    """Deny `mirror` a right on a topic for the time of the block."""
    operation, deny = AclOperation[right], AclPermissionType.DENY
    place = (
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        operation,
        deny,
    )
    for future in admin.create_acls([AclBinding(*place)]).values():
        future.result(30)
    try:
        yield
    finally:
        for future in admin.delete_acls([AclBindingFilter(*place)]).values():
            future.result(30)


@pytest.mark.slow
def test_a_run_that_is_refused_shows_no_secret(secure: SecureClusters, tmp_path: Path) -> None:
    create_topic(secure.open_door("east"), "secrets")
    write(secure.open_door("east"), "secrets", numbered(10))
    grant(
        secure.admin("east"),
        [{"operation": "DESCRIBE", "resource": "TOPIC", "pattern": "LITERAL", "name": "secrets"}],
    )
    grant(secure.admin("west"), EVERYTHING)
    path = topology(
        tmp_path,
        secure.cluster("east", "OAUTHBEARER"),
        secure.cluster("west", "SCRAM-SHA-256"),
        {FLOW: {"topics": ["secrets"], **RECORDS_ONLY}},
    )
    code, lines = run_once(path)
    assert code in (1, 2)
    # not at the start of a line: Spark's log ends without a line end
    assert said(path).count("mirrorlake: ") == 1
    assert_no_secret(secure, tmp_path, lines)


def test_the_table_of_java_settings_is_that_of_the_client() -> None:
    """Each name that a `consumer` block may hold stands in the Java client."""
    (jar,) = [path for path in connector_jars() if path.name.startswith("kafka-clients")]
    with zipfile.ZipFile(jar) as archive:
        folders = ("org/apache/kafka/clients/", "org/apache/kafka/common/config/")
        names = [
            name
            for name in archive.namelist()
            if name.startswith(folders) and name.endswith("Config.class")
        ]
        names += [
            name
            for name in archive.namelist()
            if re.search(r"config/(Ssl|Sasl)Configs\.class$", name)
        ]
        text = b"".join(
            archive.read(name)
            for name in (*names, "org/apache/kafka/clients/CommonClientConfigs.class")
        )
    assert {name for name in JAVA_CONSUMER if name.encode() not in text} == set()
