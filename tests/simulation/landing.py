"""Landing as the simulation has it."""

from tests.simulation.stage import Row
from tests.simulation.world import SOURCE, World


class Lander:
    """Lands from where the table ends."""

    def __init__(self, world: World) -> None:
        self._world = world

    def land(self) -> bool:
        """One batch."""
        world = self._world
        world.saw_source()
        ends: dict[tuple[str, int], tuple[int, int]] = {}
        for row in world.stage.rows():
            key = (row.topic, row.partition)
            ends[key] = max(ends.get(key, (0, 0)), (row.generation, row.offset + 1))
        rows: list[Row] = []
        for topic in world.source.topics.values():
            if topic.name not in world.selected:
                continue
            generation = world.generation_of(topic.topic_id)
            if generation is None:
                older = [life[1] for life in world.lives if life[0] == topic.name]
                generation = max(older, default=-1) + 1
                if older:
                    world.tell("topic_recreated", topic.name)
                    world.incidents[-1].resolution = "new-generation"
                world.begin_life(topic.name, generation, topic.topic_id)
            for partition, log in enumerate(topic.logs):
                known, end = ends.get((topic.name, partition), (generation, 0))
                first = end if known == generation else 0
                if log.start > first and self._owed(topic.topic_id, partition) < log.start:
                    world.tell("source_truncated", topic.name, partition, first=first, last=log.start - 1)
                for offset, entry in log.read(first, log.end):
                    rows.append(
                        Row(
                            SOURCE,
                            topic.name,
                            partition,
                            generation,
                            offset,
                            entry.timestamp,
                            entry.key,
                            entry.value,
                            entry.headers,
                        )
                    )
        rows = rows[: world.settings.land_records]
        if rows:
            world.stage.append(self._dealt(rows), f"query{world.next_id()}", 0)
        return bool(rows)

    def _owed(self, topic_id: str, partition: int) -> int:
        return self._world.seen.get((topic_id, partition), 0)

    def _dealt(self, rows: list[Row]) -> list[list[Row]]:
        if self._world.settings.land_files < 2 or len(rows) < 2:
            return [rows]
        cut = 1 + self._world.salt % (len(rows) - 1)
        return [rows[:cut], rows[cut:]]
