"""The checks of `mirrorlake doctor`: what a topology file needs of this machine, its clusters and
its lake. They change nothing, and no sentence contains a secret."""

import os
import platform
import shutil
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Literal

from deltalake.exceptions import DeltaError

from mirrorlake.checks.problem import Problem, refused_flows
from mirrorlake.checks.rules import aliases_of
from mirrorlake.config.redaction import without_secrets
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import (
    ClusterUnreachable,
    InputError,
    LakeError,
    MirrorlakeError,
    MissingJava,
    first_line,
)
from mirrorlake.extras import installed, missing
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.folder import has_table
from mirrorlake.lake.place import Place
from mirrorlake.library.internals import Internals
from mirrorlake.native.selfcheck import problem as native_problem
from mirrorlake.spark.home import session_is_given
from mirrorlake.spark.java import find_java, java_version
from mirrorlake.threads import side_by_side

CheckState = Literal["good", "note", "bad"]
#: Free bytes on the lake's disk: below the first a run is about to stop, below the second soon.
FULL_BYTES, TIGHT_BYTES = 1 << 30, 10 << 30
#: The same for free inodes: a lake has up to 800,000 files, commits and a week's small files.
NO_FILES, FEW_FILES = 10_000, 1_000_000
#: How long a broker may take to accept a connection, and how many are tried in parallel.
_CONNECT_SECONDS, _AT_ONCE = 5.0, 16
_PARTS = ("confluent-kafka", "deltalake", "duckdb", "pyarrow", "pyspark")
_UNREACHED = "its name has to resolve on this machine, and its port to be open to it"
_LOGINS = "see docs/security.md for secrets and logins"
_READ_ON = "see docs/troubleshooting.md"
_NO_FLOW = "none of the file is enabled, so no cluster was asked, and no right checked"
_UNSEEN = "make one, change `topics`, or grant DESCRIBE on those that there are (docs/security.md)"
_UNWRITTEN = (
    "not checked: the right to write there, which `run` needs at once, since that leaves a file"
)
_UNTRIED = (
    "not checked: the rights on its group and its transactional ids at the target, which `run` "
    "tries before the first record, since that leaves an id there"
)


@dataclass(frozen=True)
class Check:
    """The result of one check. `bad` makes the command exit with 1, a `note` is worth knowing;
    `fix` says what to do, empty if nothing."""

    check: str
    subject: str
    state: CheckState
    sentence: str
    fix: str = ""


def examined(known: Internals) -> list[Check]:
    """Run all checks, those of this machine first. Raises InputError without a topology."""
    from mirrorlake.library.doctor_metrics import metrics_checks  # which imports this module

    flows = known.topology.active_flows()
    checks = [*program_checks(), *lake_checks(known), *cluster_checks(known.connections, flows)]
    checks += metrics_checks(known.topology.metrics)
    if not flows:
        checks.append(Check("flow", "all", "note", _NO_FLOW, "set flows.NAME.enabled: true"))
    silent = {one.subject for one in checks if one.check == "cluster" and one.state == "bad"}
    asked = [flow for flow in flows if not silent & {flow.source, flow.target}]
    knows = not any(one.check == "lake" and one.state == "bad" for one in checks)
    if asked and knows:
        try:
            return [*checks, *right_checks(flows, asked, *_planned(known, asked))]
        except (LakeError, DeltaError, OSError) as error:
            place = without_secrets(known.place)
            why = f"cannot be read: {first_line(error)}"
            checks.append(Check("lake is readable", place, "bad", why, _READ_ON))
    return [*checks, *right_checks(flows, asked, *_planned(known, asked, knows=False))]


def _planned(
    known: Internals, flows: Sequence[ResolvedFlow], knows: bool = True
) -> tuple[list[Problem], dict[str, int]]:
    """`plan`'s problems and each flow's number of topics; unless it `knows`, without the lake."""
    from mirrorlake.library.planning import planned
    from mirrorlake.run.plan import make_plan

    if not flows:
        return [], {}
    if knows:
        plan = planned(known, [flow.name for flow in flows], tries_puts=False).to_dict()
    else:
        plan = make_plan(known.connections, flows)
    problems = [
        Problem(**{**problem, "flows": tuple(problem["flows"])}) for problem in plan["problems"]
    ]
    for flow in plan["flows"]:
        if (why := flow["unasked"]) is not None:  # although `cluster_checks` got an answer
            sentence, name = f"not checked: {why}", flow["flow"]
            problems.append(Problem("cluster", "refuse", (name,), name, sentence, fix=_UNREACHED))
    return problems, {flow["flow"]: len(flow["topics"]) for flow in plan["flows"]}


def program_checks() -> Iterator[Check]:
    """Check which programs are installed, and that they work."""
    versions = ", ".join(f"{name} {_version(name)}" for name in _PARTS)
    where = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Check("versions", "mirrorlake", "good", f"{_version('mirrorlake')}, {where}; {versions}")
    if (why := native_problem()) is None:
        yield Check("native part", "records", "good", "loaded: records go as Arrow's columns")
    else:
        yield Check(
            "native part",
            "records",
            "note",
            f"not used, so records go one by one, which takes several times the CPU: {why}",
            "install the wheel for this platform with its own librdkafka (docs/compatibility.md)",
        )
    yield _spark()
    yield _java()


def _spark() -> Check:
    if not installed("spark"):
        return Check("spark", "pyspark", "note", str(missing("spark")))
    given = "the session that this process is given" if session_is_given() else "one of its own"
    return Check("spark", "pyspark", "good", f"{_version('pyspark')}, with {given}")


def _java() -> Check:
    if session_is_given():
        return Check("java", "java", "good", "not needed here: Spark runs elsewhere")
    try:
        java = find_java()
    except MissingJava as error:
        return Check("java", "java", "note", "none, so no Spark starts here", str(error))
    return Check("java", "java", "good", f"version {java_version(java)} at {java}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def lake_checks(known: Internals) -> Iterator[Check]:
    """Check that the lake can be reached, read and written, and how much room it has."""
    place = without_secrets(known.place)
    if known.location.path is None:
        yield Check("lake", place, "note", "in a catalog, which `status` asks; not checked here")
        return
    try:
        root = known.root
        there = has_table(root, "records")
    except (MirrorlakeError, OSError) as error:
        yield Check("lake", place, "bad", f"cannot be read: {error}", "see docs/object_stores.md")
        return
    state = "is there" if there else "is not there yet: the first `run` makes it"
    yield Check("lake", place, "good", state)
    if root.in_store:
        yield Check("lake is writable", place, "note", _UNWRITTEN)
    else:
        yield from folder_checks(root, place)


def folder_checks(root: Place, place: str) -> Iterator[Check]:
    """Check that the lake's folder, or its nearest existing parent, is writable and has room."""
    folder = Path(str(root)).absolute()
    folder = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Check(
            "lake is writable",
            place,
            "bad",
            f"user {os.geteuid()} may not write into {folder}",
            "change its owner, or lake.path",
        )
    yield from _room_for_files(folder, place)
    free = shutil.disk_usage(folder).free
    state: CheckState = "bad" if free < FULL_BYTES else "note" if free < TIGHT_BYTES else "good"
    fix = "" if state == "good" else "make room, or have `mirrorlake maintain` delete old records"
    yield Check("room", place, state, f"{free / (1 << 30):,.1f} GB are free", fix)


def _room_for_files(folder: Path, place: str) -> Iterator[Check]:
    """Check free inodes: a lake is many small files; a disk may have bytes but no inode."""
    disk = os.statvfs(folder)
    if disk.f_files and disk.f_favail < FEW_FILES:
        state: CheckState = "bad" if disk.f_favail < NO_FILES else "note"
        fix = "use a file system with more inodes, or set a short maintain.vacuum_hours"
        yield Check("room", place, state, f"{disk.f_favail:,} more files have a place", fix)


def cluster_checks(connections: Connections, flows: Collection[ResolvedFlow]) -> Iterator[Check]:
    """Check that each cluster of the flows answers, and its brokers: all at the same time."""
    checks = side_by_side(lambda alias: [*_cluster(connections, alias)], aliases_of(flows))
    return chain.from_iterable(checks)


def _cluster(connections: Connections, alias: str) -> Iterator[Check]:
    began = time.monotonic()
    try:
        cluster_id = connections.identify([alias])[alias]
        brokers = connections.admin(alias).known_brokers()
        topics = len(connections.admin(alias).topics())
    except InputError as error:
        fix = _UNREACHED if isinstance(error, ClusterUnreachable) else _LOGINS
        yield Check("cluster", alias, "bad", str(error), fix)
        return
    took = f"answers in {(time.monotonic() - began) * 1000:,.0f} ms"
    yield Check(
        "cluster", alias, "good", f"{took}: {cluster_id}, {brokers} brokers, {topics} topics"
    )
    yield from broker_checks(alias, connections.admin(alias).addresses())


def broker_checks(alias: str, addresses: Collection[tuple[str, int]]) -> Iterator[Check]:
    """Check that brokers are reached at advertised addresses, which may differ from the file's."""
    problems = zip(addresses, side_by_side(_not_reached, addresses, _AT_ONCE), strict=True)
    away = [f"{host}:{port} ({why})" for (host, port), why in problems if why]
    if not away:
        yield Check("ports", alias, "good", f"all {len(addresses)} brokers are reached from here")
        return
    yield Check(
        "ports",
        alias,
        "bad",
        f"{len(away)} of {len(addresses)} brokers are not reached from here at the address by "
        f"which the cluster names them: {', '.join(away)}",
        "open these ports to this machine, or have the brokers' advertised.listeners name what it "
        "reaches",
    )


def _not_reached(address: tuple[str, int]) -> str | None:
    """Why a port accepts no connection; None if it does."""
    try:
        socket.create_connection(address, _CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def right_checks(
    flows: Iterable[ResolvedFlow],
    asked: Collection[ResolvedFlow],
    problems: Sequence[Problem],
    topics: Mapping[str, int] | None = None,
) -> Iterator[Check]:
    """Report per flow the problems that `plan` found, rights included, and its number of topics; a
    flow that was not `asked` is reported as not checked."""
    for flow in flows:
        if flow not in asked:
            yield Check("flow", flow.name, "bad", "not checked, since a cluster of it failed")
            continue
        mine = [problem for problem in problems if flow.name in problem.flows]
        refused = flow.name in refused_flows(mine)
        for problem in mine:
            state: CheckState = "bad" if problem.severity == "refuse" else "note"
            yield Check(problem.rule, flow.name, state, problem.sentence, problem.fix)
        if refused:
            continue  # its rights were not checked
        count = (topics or {}).get(flow.name)
        if count == 0:
            yield Check("topics", flow.name, "note", "no topic that is shown matches", _UNSEEN)
        elif not any(problem.rule == "access" for problem in mine):
            which = "its topics" if count is None else f"its {count} topics"
            yield Check("access", flow.name, "good", f"the rights on {which} are there")
        if flow.settings.delivery == "exactly_once":
            yield Check("access", flow.name, "note", _UNTRIED)
