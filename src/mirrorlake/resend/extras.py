"""What restored topics need beside their records: configs, ACLs, and positions of consumer groups.

Each is applied by difference, so a repeated restore does what is left. Each change, refused ones
too, is a row of `changes`. The source is never queried: `states` and `checkpoints` have it all.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mirrorlake.errors import ReplicationError, some_of
from mirrorlake.groups.checkpoint_plan import GroupPartition
from mirrorlake.groups.checkpoint_table import deleted_before, positions_as_of, positions_since
from mirrorlake.groups.moves import KIND as GROUP
from mirrorlake.groups.moves import MoveResult
from mirrorlake.kafka.admin_configs import alter_topic_configs, describe_topic_configs
from mirrorlake.kafka.values import ConfigValue, TopicInfo
from mirrorlake.lake.changes import Change
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.states import ALWAYS, states_as_of
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.lake.translate import translate_all
from mirrorlake.naming.naming import Naming
from mirrorlake.offsets.generations import Begun
from mirrorlake.offsets.positions import Committed, TopicAndPartition
from mirrorlake.resend.acls import AclsPlanned, make_acls, plan_restored_acls
from mirrorlake.resend.configs import ConfigsPlanned, Restored, plan_restored
from mirrorlake.resend.cut import RestoredGenerations
from mirrorlake.resend.groups import moved_before, plan_groups, restore_groups, standings
from mirrorlake.resend.note import Resend
from mirrorlake.resend.removed import NAMED
from mirrorlake.resend.topics import KEPT

#: The values of `--with`.
CONFIGS, ACLS, GROUPS = "configs", "acls", "groups"
ALL = (CONFIGS, ACLS, GROUPS)
#: Why a position is not moved.
LACKING = "the restored topic has no such partition; add partitions, and run this again"


@dataclass
class ExtrasDone:
    """What was done, or would be: rows as commands show them; sentences about what is left
    unchanged; whether nothing is left to do; whether something is `lacking` for good."""

    configs: list[dict[str, Any]] = field(default_factory=list)
    acls: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    complete: bool = True
    lacking: bool = False


class Extras:
    """What one restore does beside its records."""

    def __init__(
        self,
        deployment: Deployment,
        naming: Naming,
        target: str,
        *,
        what: Collection[str],
        until_ms: int,
    ) -> None:
        """`naming` names topics at `target`; `what` is some of ALL, as of `until_ms`."""
        self._lake, self._event_log = deployment.lake, deployment.event_log
        self._naming, self._what, self._until_ms = naming, frozenset(what), until_ms
        self._admin = deployment.connections.admin(target)
        self._groups = deployment.connections.groups(target)

    def plan(
        self, resend: Resend, begun: Collection[Begun], oldest: Mapping[str, int]
    ) -> ExtrasDone:
        """What would be done once the records are sent; changes nothing. Raises ClusterUnreachable.

        Args:
            resend: the restore.
            begun: the generations of the source's topics.
            oldest: the oldest restored record's time by source topic, ms; missing if there is none.
        """
        done = ExtrasDone()
        if CONFIGS in self._what:
            configs = self._configs(resend, oldest)
            done.configs = [
                _config(change.row(change.refusal or None)) for change in configs.changes
            ]
            done.warnings += (*configs.kept, *configs.left, *configs.untaken)
        if ACLS in self._what:
            planned = self._acls(resend)
            done.acls = [{**vars(acl), "error": None} for acl in planned.create]
            done.warnings += (*planned.left, *planned.untaken)
        if GROUPS in self._what:
            positions, left = self._positions(resend, begun)
            done.warnings += left
            there = self._admin.topics()
            done.groups = [
                _unmoved(key, position, resend, there.get(resend.names[key[1]]))
                for key, position in sorted(positions.items())
            ]
        return done

    def carry_out(
        self, resend: Resend, begun: Collection[Begun], oldest: Mapping[str, int]
    ) -> ExtrasDone:
        """Do it, after the records were sent. Raises ClusterUnreachable."""
        done = ExtrasDone()
        lacking, untaken = list[str](), list[str]()
        if CONFIGS in self._what:
            configs = self._configs(resend, oldest)
            done.warnings += configs.kept
            lacking += configs.left
            untaken += configs.untaken
            done.configs = [_config(row) for row in self._noted(resend, self._set(configs))]
        if ACLS in self._what:
            planned = self._acls(resend)
            lacking += planned.left
            untaken += planned.untaken
            rows = self._noted(resend, make_acls(self._admin, planned.create))
            done.acls = [
                {**vars(acl), "error": row.error}
                for acl, row in zip(planned.create, rows, strict=True)
            ]
        if GROUPS in self._what:
            positions, left = self._positions(resend, begun)
            lacking += left
            done.groups, without = self._move(resend, positions)
            lacking += without
        done.warnings += (*lacking, *untaken)
        done.lacking = bool(lacking)
        failed = [row for row in (*done.configs, *done.acls) if row["error"] is not None]
        moved = all(row["done"] in ("moved", "there") for row in done.groups)
        done.complete = moved and not failed and not untaken
        return done

    def _noted(self, resend: Resend, rows: Sequence[Change]) -> Sequence[Change]:
        self._event_log.record(resend.name, rows)
        return rows

    def _states(self, resend: Resend) -> dict[str, TopicState]:
        return states_as_of(self._lake.reader, self._naming.source, self._until_ms, resend.names)

    def _configs(self, resend: Resend, oldest: Mapping[str, int]) -> ConfigsPlanned:
        """Plan configs; for a missing topic, by the configs that it will be made with."""
        there, states = self._admin.topics(), self._states(resend)
        made = {key: ConfigValue(value, "topic") for key, value in KEPT.items()}
        present = there.keys() & set(resend.names.values())
        described = describe_topic_configs(self._admin, present)
        topics = {
            topic: Restored(
                name,
                described.configs.get(name, made),
                self._factor(there.get(name), states.get(topic)),
                oldest.get(topic),
            )
            for topic, name in resend.names.items()
            if name not in described.refused
        }
        untaken = (
            f"configs of topic {name} are not restored: cluster {self._admin.alias} does not "
            f"report those that it has ({why}); grant DESCRIBE_CONFIGS on it, and run this again"
            for name, why in sorted(described.refused.items())
        )
        planned = plan_restored(states, topics, time.time_ns() // 1_000_000)
        return replace(planned, untaken=tuple(untaken))

    def _factor(self, there: TopicInfo | None, state: TopicState | None) -> int:
        return there.factor if there is not None else state.factor if state is not None else 1

    def _set(self, planned: ConfigsPlanned) -> list[Change]:
        refused = {change: change.refusal for change in planned.changes if change.refusal}
        errors = alter_topic_configs(
            self._admin, [change for change in planned.changes if change not in refused]
        )
        return [change.row(refused.get(change, errors.get(change))) for change in planned.changes]

    def _acls(self, resend: Resend) -> AclsPlanned:
        return plan_restored_acls(self._states(resend), resend.names, self._naming, self._admin)

    def _positions(
        self, resend: Resend, begun: Collection[Begun]
    ) -> tuple[dict[GroupPartition, Committed], list[str]]:
        """Positions in restored topics, and sentences about positions without a meaning there."""
        committed = positions_as_of(self._lake.reader, self._naming.source, self._until_ms)
        restored = RestoredGenerations(resend.ranges, begun)
        positions, left = {}, set()
        for key, (position, generation) in committed.items():
            if key[1] not in resend.names:
                continue
            offset = restored.position(key[1:], generation, position.offset)
            if offset is None:
                left.add(f"{key[1]}-{key[2]}")
            else:
                positions[key] = position._replace(offset=offset)
        warnings = [
            f"positions of groups in {place} are not restored: it was made again at the source, or "
            "its log went back, since; they are of what is there now"
            for place in sorted(left)
        ]
        return positions, [*warnings, *self._not_known(resend, bool(committed))]

    def _not_known(self, resend: Resend, known: bool) -> list[str]:
        """Sentences about groups without positions as of the time in the lake: none had been read
        by then (not `known`), or `maintain` may have deleted them. A later group had none."""
        if self._until_ms == ALWAYS:
            return []
        places = defaultdict[str, list[str]](list)
        since = positions_since(self._lake.reader, self._naming.source, self._until_ms)
        deleted = deleted_before(self._event_log) if since else None
        for (group, topic, partition), first_at in sorted(since.items()):
            is_lost = deleted is not None and first_at < deleted
            if topic in resend.names and (is_lost or not known):
                places[group].append(f"{topic}-{partition}")
        return [
            f"positions of group {group} in {some_of(names, NAMED)} are not restored: the lake "
            "does not know where it stood then, before its first checkpoint, or before what "
            "maintain.history_days keeps"
            for group, names in places.items()
        ]

    def _move(
        self, resend: Resend, positions: Mapping[GroupPartition, Committed]
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """The outcome of each position, and sentences about groups that miss restored records."""
        asked = {(*key[1:], position.offset) for key, position in positions.items()}
        translated = translate_all(self._lake.now, resend.name, asked)
        moved = moved_before(self._event_log.history(resend.name, GROUP))
        there = self._admin.topics()
        for name in sorted({resend.names[key[1]] for key in positions} - there.keys()):
            raise ReplicationError(
                f"cluster {self._admin.alias} does not show topic {name}, in which groups are to "
                "be moved; give the same command again, or, where the topic was deleted, start "
                "over with --start-over",
                topic=name,
            )
        standing = standings(positions, resend.names, translated, _begun(resend, there))
        known = {one.checkpoint.group_partition for one in standing}
        done = [
            _unmoved(key, position, resend, there[resend.names[key[1]]])
            for key, position in positions.items()
            if key not in known
        ]
        planned, without = plan_groups(self._admin, self._groups, standing, moved), list[str]()
        for step in restore_groups(self._groups, planned):
            self._noted(resend, [result.change() for result in step if result.done != "there"])
            done += [_group(result) for result in step]
            without += [
                _without_records(result)
                for result in step
                if result.done in ("moved", "there") and result.is_left
            ]
        done.sort(key=lambda row: (row["group"], row["topic"], row["partition"]))
        return done, without


def _begun(resend: Resend, there: Mapping[str, TopicInfo]) -> dict[TopicAndPartition, int]:
    """Where each partition of existing topics ended when a restore began; 0 if added since."""
    return {
        (part.target_topic, number): part.began[number] if number < len(part.began) else 0
        for part in resend.parts
        if part.target_topic in there
        for number in range(there[part.target_topic].partitions)
    }


def _unmoved(
    key: GroupPartition, position: Committed, resend: Resend, there: TopicInfo | None
) -> dict[str, Any]:
    """A position that is to be moved, or cannot be since the topic `there` lacks its partition."""
    group, topic, partition = key
    lacks = there is not None and partition >= there.partitions
    return {
        "group": group,
        "topic": topic,
        "partition": partition,
        "position": position.offset,
        "to_topic": resend.names[topic],
        "to_position": None,
        "done": "failed" if lacks else "would move",
        "detail": LACKING if lacks else None,
    }


def _group(result: MoveResult) -> dict[str, Any]:
    names = ("group", "topic", "partition", "position", "to_topic", "to_position", "done", "detail")
    document = result.document()
    return {name: document[name] for name in names}


def _without_records(result: MoveResult) -> str:
    """That a group was moved to where the restored topic begins or ends now."""
    checkpoint = result.standing.checkpoint
    place = f"{checkpoint.target_topic}-{checkpoint.partition}"
    why = " and ".join(result.standing.lacks)
    return f"group {checkpoint.group_id}, {place}: at {result.to_position}, since {why}"


def _config(row: Change) -> dict[str, Any]:
    return {"topic": row.resource, "before": row.before, "after": row.after, "error": row.error}
