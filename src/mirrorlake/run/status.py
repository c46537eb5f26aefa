"""The state of the flows, as one document: what `mirrorlake status` shows."""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from datetime import datetime, timezone
from functools import partial
from typing import Any

from mirrorlake.checks.broken_laws import broken_laws
from mirrorlake.config.lake import Lake as Location
from mirrorlake.config.topology import Topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.lease import lease_state
from mirrorlake.lake.lease_holder import Holder, LeaseState
from mirrorlake.lake.other_writers import newest_by_others
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.starts import has_started
from mirrorlake.naming.worker_groups import work_of_flow
from mirrorlake.run.attention import attention, standing
from mirrorlake.run.workers import read_workers, works_of
from mirrorlake.threads import in_thread

#: The tables and views that a status reads.
_READ = ("flow_status", "alerts", "living_targets", "proof_status", "starts")
UNASKED = (
    "the clusters were not asked, and laws not checked: the lake was opened without its "
    "topology file"
)
#: The modes of a run that can leave a lease behind when killed, by how the process of a flow is
#: chosen: where Kafka chooses, another process goes on at once.
_MODES = {"lease": ("once", "continuous"), "kafka": ("once",)}
#: Less free space than the rows and the commit of a batch may take.
FULL_BYTES = 1 << 20
#: A run may end after it has made the lake and before its flows begin.
NOT_BEGUN = (
    "no flow has begun in this lake yet: `mirrorlake run` begins them; one that has ended before "
    "it did said why"
)
#: By flow: how it was last run, and the state of its lease.
_Leases = dict[str, tuple[str, LeaseState]]


def read_status(
    lake: Reader, connections: Connections | None, lake_id: str | None = None
) -> dict[str, Any]:
    """Returns {"healthy", "flows": [a row of `flow_status` each], "topics": [...], "incidents":
    [...], "alerts": [rows of the view `alerts`, and of laws that are broken], "unchecked":
    [sentences], "proofs": [rows of the view `proof_status`], "attention": [a sentence for each
    thing that needs attention], "warnings": [a sentence for each thing that may come to need it],
    "workers": [which processes work or stand by for the lake `lake_id`, if Kafka decides that
    (`workers.read_workers`)]}. Flows have `enabled`, `paused` (as a whole) and `standing`, their
    state in words.

    A flow that has never run has nulls. Not healthy means that there is an alert, that the disk of
    the lake is full, which then takes no incident, or that flows are to run and none has ever begun
    in this lake. A flow or topic that the file as it is now pauses, disables or lacks raises no
    alert except for its open incidents, which wait for a decision. Without `connections` only the
    tables are read: no cluster is asked, no law is checked, and `enabled` is unknown.
    """
    workers: list[dict[str, Any]] = []
    lake.open_together(_READ)
    others = _asked_for_others(lake, None if connections is None else connections.topology.lake)
    rows = {row["flow"]: row for row in lake.table_rows("flow_status")}
    incidents, alerts = lake.table_rows("open_incidents"), [*lake.table_rows("alerts")]
    if connections is None:
        known_flows = (rows[name] for name in sorted(rows))
        flows = [{**row, "enabled": None, "standing": standing(row)} for row in known_flows]
        names, unchecked, waits = set(), [UNASKED], True
    else:
        running = [flow for flow in connections.topology.active_flows() if not flow.paused]
        waits = bool(running)
        names = {flow.name for flow in running}
        alerts = [row for row in alerts if row["alert"] == "incident" or row["flow"] in names]
        broken, unchecked = broken_laws(lake, connections, running)
        leases: _Leases = {}
        try:
            leases = _leases(lake, names, _MODES[connections.topology.availability])
        except OSError as error:
            unchecked = [*unchecked, f"whether a run was killed is not known: {error}"]
        broken += cut_off(leases)
        unchecked = [*unchecked, *_not_known_here(leases, rows, connections.topology)]
        flows = _by_topology(rows, connections.topology, leases)
        alerted = {_place(row) for row in alerts}
        alerts += [row for row in broken if _place(row) not in alerted]
        if connections.topology.availability == "kafka" and lake_id is not None:
            workers, unasked = read_workers(connections, works_of(lake_id, running))
            unchecked = [*unchecked, *unasked]
    alerts.sort(
        key=lambda row: (row["flow"], row["alert"], row["topic"] or "", row["partition"] or 0)
    )
    proofs = lake.table_rows("proof_status")
    begun = not waits or bool(rows) or bool(lake.query_rows("begun_flow"))
    warnings = _never_run(lake, sorted(names - rows.keys())) if begun else []
    full = _full_disk(lake)
    try:
        warnings += others.result()
    except OSError as error:
        unchecked = [*unchecked, f"the log was not checked for other programs' commits: {error}"]
    return {
        "healthy": begun and not alerts and not full,
        "flows": flows,
        "topics": lake.query_rows("topic_lag"),
        "incidents": incidents,
        "alerts": alerts,
        "unchecked": unchecked,
        "proofs": sorted(proofs, key=lambda row: (row["flow"], row["topic"])),
        "attention": [*full, *([] if begun else [NOT_BEGUN]), *attention(incidents, alerts)],
        "warnings": warnings,
        "workers": workers,
    }


def _never_run(lake: Reader, flows: Iterable[str]) -> list[str]:
    """A sentence for each of these flows that has never begun."""
    return [
        f"flow {name} has never begun: start `mirrorlake run` with it, or disable it"
        for name in flows
        if not has_started(lake, name)
    ]


def _full_disk(lake: Reader) -> list[str]:
    """A sentence if the folder of a lake is full and takes no more writes, not even incidents."""
    root = lake.directory
    free = None if root is None else root.free_bytes()
    if free is None or free >= FULL_BYTES:
        return []
    return [f"the disk of the lake at {root} is full: nothing is landed or noted; make room"]


def _asked_for_others(lake: Reader, location: Location | None) -> Future[list[str]]:
    """Commits by others (`newest_by_others`), read in a thread; `location` is the file's `lake`."""
    open_now = {table: held for table in TABLES if (held := lake.held(table)) is not None}
    # a catalog's own tables are Spark's
    root = lake.directory if location is None or location.path is not None else None
    named = location is not None and location.catalog is not None
    return in_thread("commits of others", partial(newest_by_others, root, named, open_now))


def _by_topology(
    rows: Mapping[str, dict[str, Any]], topology: Topology, leases: _Leases
) -> list[dict[str, Any]]:
    """The flows of the file, in its order."""
    flows = []
    for name, settings in topology.flows.items():
        known = rows.get(name, {"flow": name, "open_incidents": 0})
        row = {**known, "enabled": settings.enabled, "paused": settings.paused is True}
        has_ended = name in leases and leases[name][1].is_free
        flows.append({**row, "standing": standing(row, topology.quiet_seconds(name), has_ended)})
    return flows


def _leases(lake: Reader, flows: Collection[str], modes: Collection[str]) -> _Leases:
    """How each of these flows was last run, if by one of these modes, and the state of its lease,
    in a lake at a path or URL. Raises OSError."""
    leases = _Leases()
    for row in lake.table_rows("objectives"):
        if row["mode"] in modes and row["flow"] in flows:
            state = lease_state(lake, work_of_flow(row["flow"]))
            if state is not None:
                leases[row["flow"]] = (row["mode"], state)
    return leases


def cut_off(leases: _Leases) -> list[dict[str, Any]]:
    """Rows like those of the view `alerts` for flows whose last run was killed: the view does not
    watch a flow that is not to run all the time, and waits for samples of others."""
    alerts = []
    for flow, (mode, state) in leases.items():
        if state.left_by is None:
            continue
        began = datetime.fromisoformat(state.left_by.since)
        alert: dict[str, Any] = {"flow": flow, "alert": "not_running", "topic": None}
        seconds = (datetime.now(timezone.utc) - began).total_seconds()
        alert |= {"partition": None, "value": seconds, "threshold": 0.0}
        command = "run --once" if mode == "once" else "run"
        detail = (
            f"`{command}` was killed before it came to its end ({state.left_by}), and records may "
            "wait: the next run brings them"
        )
        alerts.append({**alert, "since": began.replace(tzinfo=None), "detail": detail})
    return alerts


def _not_known_here(
    leases: _Leases, rows: Mapping[str, Mapping[str, Any]], topology: Topology
) -> list[str]:
    """A sentence for each run to its end that a process of another host began, and of which no
    sample of late shows that it goes on. `rows` are those of `flow_status`, by flow."""
    return [
        f"whether `run --once` of flow {flow} still runs, or was killed before it came to its end, "
        f"is not known on this host: {state.elsewhere} has not given its lease back"
        for flow, (mode, state) in leases.items()
        if mode == "once"
        and state.elsewhere is not None
        and not _sampled_since(state.elsewhere, rows.get(flow, {}), topology.quiet_seconds(flow))
    ]


def _sampled_since(holder: Holder, row: Mapping[str, Any], quiet_seconds: float) -> bool:
    """Whether a flow was sampled since this process began, by its own clock, and of late."""
    at = row.get("sampled_at")
    began = datetime.fromisoformat(holder.since).replace(tzinfo=None)
    return at is not None and at >= began and row["sample_age_seconds"] <= quiet_seconds


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["flow"], row["alert"], row["topic"], row["partition"]
