"""Naming policies against MirrorMaker 2's documented answers (docs/mm2.md, "Which topics are
mirrored", KIP-382, KIP-690, KIP-1074)."""

import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirrorlake.config.topology import Topology
from mirrorlake.errors import TopologyError
from mirrorlake.naming import custom_policy
from mirrorlake.naming.custom_policy import CustomPolicy
from mirrorlake.naming.naming import Naming
from mirrorlake.naming.policy import check_topic_name, is_usable_alias
from mirrorlake.run.edits import wanted_flows

ABC = frozenset({"A", "B", "C"})
DEFAULT = Naming("default", "B", ABC)
FROM_A = Naming("default", "A", ABC)
IDENTITY = Naming("identity", "A", ABC)


def test_default_policy_prefixes_and_strips_one_hop() -> None:
    assert DEFAULT.target_topic("A.t") == "B.A.t"
    assert DEFAULT.source_of("B.A.t") == "B"
    assert DEFAULT.upstream_topic("B.A.t") == "A.t"
    assert DEFAULT.upstream_topic("t") is None
    assert Naming("default", "A", ABC, "_").target_topic("heartbeats") == "A_heartbeats"


@pytest.mark.parametrize("topic", ["orders.v1", "orders", ".A", "AB.t", "a.t"])
def test_a_dotted_user_topic_is_not_remote(topic: str) -> None:
    assert DEFAULT.source_of(topic) is None
    assert DEFAULT.upstream_topic(topic) is None


def test_identity_policy_renames_heartbeats_only() -> None:
    assert IDENTITY.target_topic("t") == "t"
    assert IDENTITY.target_topic("heartbeats") == "A.heartbeats"
    assert IDENTITY.target_topic("my-heartbeats") == "my-heartbeats"
    assert IDENTITY.source_of("B.t") == "A"
    assert IDENTITY.source_of("B.heartbeats") == "B"
    assert IDENTITY.upstream_topic("B.heartbeats") == "heartbeats"
    assert IDENTITY.upstream_topic("B.t") == "B.t"
    assert IDENTITY.target_prefix("B.") == "B." and IDENTITY.target_prefix("") is None


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("B.t", True),
        ("C.B.t", True),
        ("A.t", False),
        ("C.t", False),
        ("t", False),
        ("x.B.t", False),
        ("B", False),
    ],
)
def test_only_the_target_alias_makes_a_cycle(topic: str, expected: bool) -> None:
    assert FROM_A.is_cycle(topic, "B") is expected


def test_identity_policy_sees_cycles_of_heartbeats_only() -> None:
    assert IDENTITY.is_cycle("B.heartbeats", "B")
    assert IDENTITY.is_cycle("A.B.heartbeats", "B")
    assert not IDENTITY.is_cycle("B.t", "B")


@pytest.mark.parametrize("naming", [DEFAULT, IDENTITY])
def test_heartbeats_after_any_number_of_hops(naming: Naming) -> None:
    assert all(
        naming.is_heartbeats(topic) for topic in ("heartbeats", "A.heartbeats", "B.A.heartbeats")
    )
    assert not any(
        naming.is_heartbeats(topic)
        for topic in ("x.heartbeats", "my-heartbeats", "heartbeats.A", "A.")
    )


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("__consumer_offsets", True),
        (".hidden", True),
        ("mm2-offset-syncs.B.internal", True),
        ("mm2.internal", True),
        ("A.checkpoints.internal", True),
        ("app.internal", False),
        ("x-internal", False),
        ("_schemas", False),
        ("connect-offsets", False),
        ("checkpoints.internal", False),
        ("mm2-offset-syncs.B.internal.x", False),
    ],
)
def test_internal_topics_of_kafka_4_1_1(topic: str, expected: bool) -> None:
    assert DEFAULT.is_internal(topic) is expected


def test_internal_topics_follow_the_separator() -> None:
    naming = replace(DEFAULT, internal_separator="_")
    assert naming.is_internal("mm2-offset-syncs_B_internal")
    assert naming.is_internal("A_checkpoints_internal")
    assert not naming.is_internal("A.checkpoints.internal")


PARTS = st.sampled_from(
    ["mm2", "internal", "checkpoints", "heartbeats", "A", "B", "C", ".", "_", "-", "__", "2", "x"]
)
NAMES = st.lists(PARTS, min_size=1, max_size=7).map("".join)
SEPARATORS = st.sampled_from([".", "_", "-", "__", "-.-", "2"])


@given(NAMES, SEPARATORS, st.booleans())
@example("mm2internal", "2", False)
def test_regexes_say_what_the_functions_say(topic: str, separator: str, identity: bool) -> None:
    aliases = frozenset({"A", "B", "B-", "A_A", "mm2"})
    policy = "identity" if identity else "default"
    naming = Naming(policy, "C", aliases, separator, internal_separator=separator)
    assert bool(re.fullmatch(naming.internal_regex(), topic)) is naming.is_internal(topic)
    assert bool(re.fullmatch(naming.heartbeats_regex(), topic)) is naming.is_heartbeats(topic)
    for target in sorted(aliases):
        regex = naming.cycle_regex(target)
        assert (regex is not None and bool(re.fullmatch(regex, topic))) is naming.is_cycle(
            topic, target
        )


@given(st.sampled_from(["A", "B", "a-b", "A_A", "B-"]), NAMES, SEPARATORS)
def test_remote_names_read_back(alias: str, topic: str, separator: str) -> None:
    naming = Naming("default", alias, frozenset({alias}), separator)
    remote = naming.target_topic(topic)
    if is_usable_alias(alias, separator):
        assert (naming.source_of(remote), naming.upstream_topic(remote)) == (alias, topic)


@pytest.mark.parametrize("name", ["a", "x" * 249, "A.b_c-9", "...", "_"])
def test_legal_topic_names(name: str) -> None:
    assert check_topic_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        (".", '"."'),
        ("..", '".."'),
        ("x" * 250, "250"),
        ("a b", "' '"),
        ("a\n", r"'\n'"),
        ("ü", "'ü'"),
    ],
)
def test_illegal_topic_names_give_the_reason(name: str, reason: str) -> None:
    assert reason in (check_topic_name(name) or "")


def test_multi_hop_names_read_back_hop_by_hop() -> None:
    assert DEFAULT.target_topic(FROM_A.target_topic("orders.v1")) == "B.A.orders.v1"
    assert DEFAULT.upstream_topic(DEFAULT.upstream_topic("B.A.orders.v1") or "") == "orders.v1"
    assert DEFAULT.upstream_topic("orders.v1") is None


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for policies; what was imported from it, and the search path, are forgotten
    afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def naming_by(spec: str, folder: Path) -> Naming:
    return Naming(spec, "A", ABC, directory=folder)


def own(folder: Path, code: str, spec: str = "own_policy.py:P") -> Naming:
    """Names by a policy from source text, indented bodies of class P, which is loaded."""
    custom_policy._run.cache_clear()
    (folder / "own_policy.py").write_text(code, encoding="utf-8")
    naming = naming_by(spec, folder)
    assert naming.policy is naming.policy, "loaded once"
    return naming


ANSWERS = """\
class P:
    def remote_topic(self, source_alias, topic):
        return f"{topic}@{source_alias}" if topic != "bad" else 1 / 0
    def source_of(self, topic):
        return topic.rpartition("@")[2] if "@" in topic else (7 if topic == "odd" else None)
    def upstream_topic(self, topic):
        return topic.rpartition("@")[0] if "@" in topic else None
"""


def test_a_policy_of_ones_own_names_topics_but_not_heartbeats(folder: Path) -> None:
    naming = own(folder, ANSWERS)
    assert isinstance(naming.policy, CustomPolicy)
    assert (naming.target_topic("t"), naming.source_of("t@A"), naming.upstream_topic("t@A")) == (
        "t@A",
        "A",
        "t",
    )
    assert naming.target_topic("heartbeats") == "A.heartbeats"
    assert (naming.source_of("A.heartbeats"), naming.upstream_topic("A.heartbeats")) == (
        "A",
        "heartbeats",
    )
    assert naming.is_heartbeats("B.A.heartbeats") and not naming.is_heartbeats("heartbeats@A")
    assert (
        naming.is_cycle("t@B@C", "B")
        and not naming.is_cycle("t@A", "B")
        and naming.is_cycle("B.heartbeats", "B")
    )


@pytest.mark.parametrize(
    ("constructor", "given"),
    [
        ("def __init__(self): self.given = {}", {}),
        (
            "def __init__(self, separator): self.given = dict(separator=separator)",
            {"separator": "."},
        ),
        (
            "def __init__(self, *, source_alias, aliases): self.given = dict(s=source_alias, "
            "a=aliases)",
            {"s": "A", "a": ABC},
        ),
        (
            "def __init__(self, **given): self.given = given",
            {"separator": ".", "aliases": ABC, "source_alias": "A"},
        ),
        ("given = {}", {}),
    ],
)
def test_it_is_constructed_with_what_it_takes(
    folder: Path, constructor: str, given: dict[str, object]
) -> None:
    policy = own(folder, f"{ANSWERS}    {constructor}\n").policy
    assert isinstance(policy, CustomPolicy)
    assert getattr(policy.own, "given", None) == given


@pytest.mark.parametrize(
    ("code", "spec", "sentence"),
    [
        (
            ANSWERS,
            "no_such:P",
            "policy no_such:P: there is no module no_such; install it, or name a file",
        ),
        (ANSWERS, "own_policy:P", "there is no module own_policy; install it, or name a file"),
        (ANSWERS, "json.deeper:P", "there is no module json.deeper; install it"),
        (
            ANSWERS,
            "other.py:P",
            "other.py cannot be read (No such file or directory); correct the path",
        ),
        (
            ANSWERS,
            "own_policy.py:Q",
            "policy own_policy.py:Q: module own_policy.py has no class Q; correct the name",
        ),
        ("P = 3", "own_policy.py:P", "own_policy.py has no class P"),
        (
            "import no_such_library",
            "own_policy.py:P",
            "failed with ModuleNotFoundError: No module named 'no_such_library'; install what",
        ),
        (
            "raise ModuleNotFoundError",
            "own_policy.py:P",
            "failed with ModuleNotFoundError; install what it needs",
        ),
        ("class P(", "own_policy.py:P", "own_policy.py failed with SyntaxError"),
        (
            "raise ValueError('no\\nmore')",
            "own_policy.py:P",
            "own_policy.py failed with ValueError: no; fix it",
        ),
        (
            "class P: pass",
            "own_policy.py:P",
            "has no method remote_topic and source_of and upstream_topic; a policy needs",
        ),
        (
            ANSWERS.replace("source_of", "origin_of"),
            "own_policy.py:P",
            "class P has no method source_of; a policy needs",
        ),
        (
            f"{ANSWERS}    def __init__(self): raise KeyError",
            "own_policy.py:P",
            "making it failed with KeyError; fix",
        ),
        (
            f"{ANSWERS}    def __init__(self, x): pass",
            "own_policy.py:P",
            "making it failed with TypeError: ",
        ),
    ],
)
def test_what_is_wrong_with_a_policy_is_one_sentence(
    folder: Path, code: str, spec: str, sentence: str
) -> None:
    with pytest.raises(TopologyError) as caught:
        own(folder, code, spec)
    assert sentence in caught.value.message and "\n" not in caught.value.message


def test_what_goes_wrong_within_a_policy_is_one_sentence(folder: Path) -> None:
    naming = own(folder, ANSWERS)
    with pytest.raises(
        TopologyError,
        match=r"policy own_policy\.py:P: remote_topic\('A', 'bad'\) failed with ZeroDivision",
    ):
        naming.target_topic("bad")
    with pytest.raises(
        TopologyError,
        match=r"source_of\('odd'\) returned a value of type int, not a string or None",
    ):
        naming.source_of("odd")


def test_a_policy_that_gives_no_name_says_so(folder: Path) -> None:
    naming = own(folder, ANSWERS + "    def remote_topic(self, a, t): pass\n")
    with pytest.raises(TopologyError, match="remote_topic returned no name for topic 't'"):
        naming.target_topic("t")


def test_a_policy_that_leads_back_to_a_name_ends(folder: Path) -> None:
    naming = own(
        folder,
        """\
class P:
    def remote_topic(self, source_alias, topic): return topic
    def source_of(self, topic): return "C"
    def upstream_topic(self, topic): return {"a": "b", "b": "a"}[topic]
""",
    )
    assert not naming.is_cycle("a", "B") and naming.is_cycle("a", "C")


def test_nothing_is_imported_from_the_folder_of_the_topology_file(folder: Path) -> None:
    """A module that somebody puts there must not be what other code gets that imports its name."""
    (folder / "planted_module.py").write_text("raise SystemExit", encoding="utf-8")
    own(folder, ANSWERS)
    assert str(folder) not in sys.path and "own_policy" not in sys.modules
    with pytest.raises(TopologyError, match="there is no module planted_module"):
        own(folder, ANSWERS, "planted_module:P")
    with pytest.raises(
        TopologyError, match="No module named 'planted_module'; install what it needs"
    ):
        own(folder, "import planted_module")


def test_a_file_is_read_once_and_its_hash_is_of_what_runs(folder: Path) -> None:
    own(folder, ANSWERS)
    known = hashlib.sha256(ANSWERS.encode()).hexdigest()
    assert naming_by("own_policy.py:P", folder).file_hash == known
    (folder / "own_policy.py").write_text("raise SystemExit", encoding="utf-8")
    assert naming_by("own_policy.py:P", folder).target_topic("t") == "t@A"
    assert naming_by("own_policy.py:P", folder).file_hash == known
    assert naming_by("identity", folder).file_hash is None
    assert naming_by("json:JSONDecoder", folder).file_hash is None


def test_an_edit_lets_no_code_into_a_running_process(folder: Path) -> None:
    """A policy's file that the run did not begin with waits for the next start; one that it has is
    fine."""
    own(folder, ANSWERS)

    def topology(*policies: str) -> Topology:
        clusters = {alias: {"bootstrap_servers": alias} for alias in "abc"}
        flows = {
            f"a->{target}": {"policy": policy}
            for target, policy in zip("bc", policies, strict=False)
        }
        document = {"clusters": clusters, "lake": {"path": "./lake"}, "flows": flows}
        return Topology.model_validate(document, context={"directory": folder})

    before = topology("default", "own_policy.py:P")
    assert len(wanted_flows(topology("own_policy.py:P", "identity"), before, None)) == 2
    with pytest.raises(
        TopologyError,
        match=r"own_policy\.py:P of flow a->c is code that this run did not begin with",
    ):
        wanted_flows(before, topology("default", "json:JSONDecoder"), None)
