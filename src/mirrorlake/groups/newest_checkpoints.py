"""A running flow's newest checkpoints, in memory; read at the start and after target losses."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpoint_plan import Checkpoint, GroupPartition, selects_group
from mirrorlake.groups.checkpoint_table import append_checkpoints, newest_checkpoints
from mirrorlake.groups.running_flow import RunningFlow
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.other_logs import source_generations
from mirrorlake.offsets.positions import TopicAndPartition


class NewestCheckpoints:
    """The newest valid checkpoints, by group and partition. For one thread.

    Attributes:
        running: the flow.
        forgotten_by: callbacks that drop what is cached of topics whose log, on a side, is over.
        unpublished: checkpoints that MirrorMaker 2's clients may not have yet.
        landed: the generation in which each partition was landed when it was last queried.
        noted_at: when the newest row was written, as far as known; the next must be later to count.
        revision: a number that changes whenever the known checkpoints may have changed.
        topics: the source topics of all known checkpoints.
        groups: the groups of known checkpoints that are not gone.
    """

    def __init__(
        self,
        flow: ResolvedFlow,
        lake: Lake,
        running: RunningFlow,
        *forgotten_by: Callable[[Collection[str]], None],
    ) -> None:
        self._flow = flow
        self._lake = lake
        self.running = running
        self.forgotten_by = list(forgotten_by)
        self._newest: dict[GroupPartition, Checkpoint] | None = None
        self._losses = 0  # of the flow, when they were read
        #: Generations, at both sides, by which the known checkpoints are valid; None: check again.
        self._counts_by: tuple[Mapping[str, int], object] | None = None
        self.topics: frozenset[str] = frozenset()
        self.groups: frozenset[str] = frozenset()
        self.revision = 0
        self._landed_by: object = None  # the generations that `landed` was read by
        self.unpublished: dict[GroupPartition, Checkpoint] = {}
        self.landed: dict[TopicAndPartition, int] = {}
        self.noted_at: datetime | None = None

    def known(self) -> Mapping[GroupPartition, Checkpoint]:
        """The newest checkpoints, except those of groups that the flow does not mirror (any more),
        and of generations of source or target topics that are over. Looks at all positions whenever
        a checkpoint was written or a generation began."""
        newest, landed_by = self._read(), self.running.generations()
        if self._counts_by == (self.generations(self.topics), landed_by):
            return newest
        living = self.generations(key[1] for key in newest)
        self.begin_generations({key[1:] for key in newest})
        other = {
            key: checkpoint
            for key, checkpoint in newest.items()
            if checkpoint.generation != self.landed[key[1:]]
        }
        newest.update(carried := self._carried_over(other) if other else {})
        over = {
            key
            for key, checkpoint in newest.items()
            if living.get(key[1]) != checkpoint.target_generation
        }
        dropped = over | other.keys() - carried.keys()
        self._forget({key[1] for key in dropped})
        for key in dropped:
            del newest[key]
            self.unpublished.pop(key, None)
        self.topics = frozenset(key[1] for key in newest)
        self.groups = frozenset(key[0] for key, row in newest.items() if not row.is_gone)
        self._counts_by = {topic: living[topic] for topic in self.topics}, landed_by
        self.revision += 1
        return newest

    def write(self, rows: Sequence[Checkpoint], read_at: datetime | None = None) -> None:
        """Append rows, if any, and remember them; `read_at` is when the source was asked."""
        if not rows:
            return
        losses = self._losses
        self._read()
        self.noted_at = append_checkpoints(
            self._lake, self._flow.name, rows, read_at, newest=self.noted_at
        )
        self.known()
        self._read().update({row.group_partition: row for row in rows})
        self._counts_by = None
        if self.running.losses() != losses:
            self._newest = None  # to read from the lake which rows lie behind lost records

    def places_of(self, groups: Collection[str]) -> set[TopicAndPartition]:
        """The partitions in which groups have checkpoints."""
        known = self.known() if groups else {}
        return {key[1:] for key in known if key[0] in groups}

    def generations(self, topics: Iterable[str]) -> dict[str, int]:
        """The target generation that each topic is produced to; topics without one are left out."""
        generations = {topic: self.running.target_generation(topic) for topic in set(topics)}
        return {
            topic: generation for topic, generation in generations.items() if generation is not None
        }

    def begin_generations(self, keys: Iterable[TopicAndPartition]) -> None:
        """Drop cached translations of topics in which a partition began a new generation."""
        landed_by, begun = self.running.generations(), set[str]()
        same = landed_by == self._landed_by
        for key in {*keys} - self.landed.keys() if same else {*keys, *self.landed}:
            generation = self.running.generation(key)
            if self.landed.setdefault(key, generation) != generation:
                self.landed[key] = generation
                begun.add(key[0])
        self._forget(begun)
        self._landed_by = landed_by  # only now that all were looked at

    def _forget(self, topics: Collection[str]) -> None:
        for forget in self.forgotten_by if topics else ():
            forget(topics)

    def _read(self) -> dict[GroupPartition, Checkpoint]:
        losses = self.running.losses()
        if self._newest is None or losses != self._losses:
            if self._newest is not None:
                self._forget({key[1] for key in self._newest})
            newest = newest_checkpoints(self._lake.now, self._flow.name)
            self.noted_at = max((at for _, at in newest.values()), default=None)
            # Positions behind records that the target has lost are translated anew: these records
            # may be produced again, at other offsets.
            ours = {
                key
                for key, (checkpoint, _) in newest.items()
                if selects_group(self._flow.settings, key[0]) and not checkpoint.is_behind_lost
            }
            self._newest, self._losses = {key: newest[key][0] for key in ours}, losses
            self._counts_by = None
            # a previous process may have died between writing and publishing
            self.unpublished = dict(self._newest)
        return self._newest

    def _carried_over(
        self, checkpoints: Mapping[GroupPartition, Checkpoint]
    ) -> dict[GroupPartition, Checkpoint]:
        """Checkpoints of earlier generations that are still valid in those landed now: a log that
        went back is unchanged up to that offset."""
        known = source_generations(self._lake.now, self._flow.name)
        return {
            key: replace(checkpoint, generation=self.landed[key[1:]])
            for key, checkpoint in checkpoints.items()
            if checkpoint.generation < self.landed[key[1:]] == known.newest(key[1:])
            and not known.is_gone(checkpoint.place, checkpoint.source_position)
        }
