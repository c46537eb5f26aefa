"""The table `states`: how topics of the source clusters were from a time on."""

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from mirrorlake.kafka.values import Acl
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.rising_times import time_behind
from mirrorlake.lake.topic_states import TopicState, applying_acls

#: Later than any time that is noted, ms.
ALWAYS = 2**62


def states_as_of(
    reader: Reader, cluster: str, until_ms: int = ALWAYS, staged: Collection[str] = ()
) -> dict[str, TopicState]:
    """The state of each topic of a cluster at a time, in ms, or now. One first noted later is
    missing, unless an earlier version had it `staged`: then it has its first noted state."""
    return _states(reader.query_rows("states_as_of", cluster=cluster, until_ms=until_ms), staged)


def _states(
    rows: Iterable[Mapping[str, Any]], staged: Collection[str] = ()
) -> dict[str, TopicState]:
    return {
        row["topic"]: _state(row)
        for row in rows
        if not row["noted_later"] or row["topic"] in staged
    }


def _state(row: Mapping[str, Any]) -> TopicState:
    acls = None if row["acls"] is None else tuple(Acl(**acl) for acl in row["acls"])
    return TopicState(
        row["partitions"], row["factor"], dict(row["configs"] or {}), row["topic_id"], acls
    )


class States:
    """The states of a lake; the threads of a process share it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known: dict[str, dict[str, TopicState]] = {}
        self._acls: dict[str, frozenset[Acl]] = {}
        self._since: dict[str, datetime | None] = {}
        self._use = threading.RLock()

    def newest(self, cluster: str, fresh: bool = False) -> Mapping[str, TopicState]:
        """The newest state of each topic of a cluster; `fresh`: also what other processes noted."""
        with self._use:
            if fresh or cluster not in self._known:
                rows = self._lake.now.query_rows("states_as_of", cluster=cluster, until_ms=ALWAYS)
                self._known[cluster] = _states(rows)
                self._since[cluster] = max((row["since"] for row in rows), default=None)
            return dict(self._known[cluster])

    def forget(self, cluster: str) -> None:
        """Read again what is noted of a cluster, the next time: another process may have noted
        since, and this one takes over from it. Otherwise a topic that is again as this process last
        noted it would stay noted as the other process saw it."""
        with self._use:
            self._known.pop(cluster, None)
            self._acls.pop(cluster, None)

    def note(self, cluster: str, states: Mapping[str, TopicState]) -> None:
        """Note the states that changed. ACLs that are not reported are those of the last report."""
        with self._use:
            known = self.newest(cluster)
            states = self._with_acls(cluster, states)
            fresh = {topic: state for topic, state in states.items() if known.get(topic) != state}
            now = time_behind(self._since[cluster])
            rows = [
                {
                    **vars(state),
                    "cluster": cluster,
                    "topic": topic,
                    "since": now,
                    "configs": list(state.configs.items()),
                    "acls": None if state.acls is None else list(map(vars, state.acls)),
                }
                for topic, state in fresh.items()
            ]
            self._lake.append("states", rows_of("states", rows))
            self._known[cluster].update(fresh)
            self._since[cluster] = now if fresh else self._since[cluster]

    def note_acls(self, cluster: str, acls: frozenset[Acl]) -> None:
        """Note the ACLs on topics of a cluster, all of them, for each topic that is known."""
        with self._use:
            self._acls[cluster] = acls
            if self._others(cluster, acls, fresh=False):
                # Another process may have noted partitions or configs since.
                self.note(cluster, self._others(cluster, acls, fresh=True))

    def _others(self, cluster: str, acls: frozenset[Acl], fresh: bool) -> dict[str, TopicState]:
        """The topics to which other ACLs apply than before, with their new states."""
        known = self.newest(cluster, fresh)
        applying = applying_acls(known, acls)
        return {
            topic: replace(known[topic], acls=now)
            for topic, now in applying.items()
            if known[topic].acls != now
        }

    def _with_acls(self, cluster: str, states: Mapping[str, TopicState]) -> dict[str, TopicState]:
        """States, with the ACLs last reported where they have none."""
        unreported = {topic for topic, state in states.items() if state.acls is None}
        if cluster in self._acls:
            acls: Mapping[str, tuple[Acl, ...] | None] = applying_acls(
                unreported, self._acls[cluster]
            )
        else:
            known = self._known[cluster]
            acls = {topic: known[topic].acls for topic in unreported & known.keys()}
        return {
            topic: replace(state, acls=acls[topic]) if topic in acls else state
            for topic, state in states.items()
        }
