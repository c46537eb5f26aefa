"""Proofs and translation, over thousands of turns in which something else happens each time: what
is called proven is the same on both sides, and what is called exact is the right record."""

import random
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.errors import InputError
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.translate import translate_all
from mirrorlake.run.choices import CHOICES
from mirrorlake.run.resolve import Wanted, resolve
from mirrorlake.verify.plan import Choice
from tests.simulation.proven import MadeLog, Mirrored, ProvenWorld
from tests.support.lake_rows import FLOW

#: A topic of a world is a schedule.
TOPICS, STEPS = 16, 7
#: `make test` ends earlier.
FEWER_STEPS = 4
EVENTS = (
    *("records", "records", "records"),
    *("truncate", "rewind", "source_again", "lose", "lose", "target_again", "target_gone"),
    *("spoil_stage", "spoil_target", "decide", "decide", "decide", "decide", "forget"),
)


class Schedules:
    """Every topic of a world goes its own way."""

    def __init__(self, world: ProvenWorld, chance: random.Random) -> None:
        self.world, self.chance = world, chance
        self.topics = sorted({topic for topic, _ in world.parts})
        self.exact = self.checked = self.complete = self.put_back = 0
        #: Topics of which a copy of the lake knows nothing that holds still.
        self.left_behind: set[str] = set()

    def run(self, steps: int) -> None:
        for step in range(steps):
            for topic in self.topics:
                self.world.say(topic, f"- step {step}")
                event = self.chance.choice(EVENTS) if self.chance.random() < 0.6 else "records"
                self._happens(topic, event)
            some = [topic for topic in self.topics if self.chance.random() < 0.8]
            self.world.show()
            self.world.land(some)
            if self.chance.random() < 0.15:
                self.world.retain()
                for topic in self.topics:
                    self.world.say(topic, "maintain")
            some = [topic for topic in self.topics if self.chance.random() < 0.8]
            self.world.produce(some, self.chance)
            self.world.refresh()
            self._sample(some)
            self.check()
            for topic in self.topics:
                if self.chance.random() < 0.1:
                    self._happens(topic, "lose")
            self._verify()
            self.check()
            if self.chance.random() < 0.4:
                self._older_lake()

    def _happens(self, topic: str, event: str) -> None:
        if event not in ("records", "truncate", "spoil_stage"):
            self.left_behind.add(topic)
        getattr(self, f"_{event}")(topic)

    def _older_lake(self) -> None:
        """The lake is copied, or a copy takes its place: of what was lost, made again or decided
        since it knows nothing, so nothing more is asked of these topics."""
        if not self.world.copied:
            self.world.copy_lake()
            there = self.world.target.ends
            self.left_behind = {topic for topic in self.topics if f"east.{topic}" not in there}
            return
        self.world.put_back()
        self.put_back += 1
        for topic in self.left_behind:
            for part in self.world.of(topic):
                part.unseen = True
        self.topics = [topic for topic in self.topics if topic not in self.left_behind]
        self.world.refresh()
        self.check()

    def part(self, topic: str) -> Mirrored:
        return self.chance.choice(self.world.of(topic))

    def _records(self, topic: str) -> None:
        for part in self.world.of(topic):
            for _ in range(self.chance.randrange(5)):
                part.count += 1
                value = f"{part.source.topic_id[:6]}/{part.key[1]}/{part.count}".encode()
                part.source.entries.append(value if self.chance.random() < 0.8 else None)

    def _truncate(self, topic: str) -> None:
        part = self.part(topic)
        log = part.source
        log.start += self.chance.randrange(log.end - log.start + 1)
        self.world.say(topic, f"{part.key[1]} source starts at {log.start}")

    def _rewind(self, topic: str) -> None:
        part = self.part(topic)
        log = part.source
        cut = log.start + self.chance.randrange(log.end - log.start + 1)
        if cut == log.end:
            return
        del log.entries[cut:]
        part.rewound = min(cut, part.rewound if part.rewound is not None else cut)
        part.count += 1
        log.entries.append(f"{log.topic_id[:6]}/{part.key[1]}/{part.count}".encode())
        self.world.say(topic, f"{part.key[1]} source rewound to {cut}")

    def _source_again(self, topic: str) -> None:
        if self.chance.random() < 0.5:
            self.world._make_source(topic, len(self.world.of(topic)))
            self.world.say(topic, "source made again")
            self._records(topic)

    def _lose(self, topic: str) -> None:
        part = self.part(topic)
        log = part.target
        if part.written or not part.target.topic_id:
            return
        cut = max(log.start, log.end - self.chance.choice((1, 2, 5, 100)))
        if cut < log.end:
            del log.entries[cut:]
            part.unseen = True
            self.world.say(topic, f"{part.key[1]} target ends at {cut}")

    def _target_again(self, topic: str, gone: bool = False) -> None:
        name, parts = f"east.{topic}", self.world.of(topic)
        if name not in self.world.target.ends or self.chance.random() < 0.5:
            return
        made = "" if gone else self.world.target.make(name, *[0] * len(parts))
        if gone:
            self.world.target.delete(name)
        for part in parts:
            part.target, part.unseen = MadeLog(made), True
            part.written, part.position = [], None
        self.world.say(topic, "target gone" if gone else "target made again")

    def _target_gone(self, topic: str) -> None:
        self._target_again(topic, gone=True)

    def _spoil_target(self, topic: str) -> None:
        part = self.part(topic)
        rows = part.target.rows(0, part.target.end)
        if rows and self.chance.random() < 0.3:
            at, value = self.chance.choice(rows)
            part.target.entries[at] = value + b"!"
            part.spoilt = True
            self.world.say(topic, f"{part.key[1]} target spoilt at {at}")

    def _spoil_stage(self, topic: str) -> None:
        """Landing will leave a record out, silently."""
        part = self.part(topic)
        if self.chance.random() < 0.3:
            part.leaves_out = part.landed[1] + self.chance.randrange(3)
            self.world.say(topic, f"{part.key[1]} will not stage {part.leaves_out}")

    def _decide(self, topic: str) -> None:
        rows = self.world.open_rows()
        mine = [row for row in rows if row["topic"] == topic and row["kind"] in CHOICES]
        if not mine:
            return
        row = self.chance.choice(mine)
        choices = [one for one in CHOICES[row["kind"]] if one not in ("read-again", "revoke")]
        if self.chance.random() < 0.95:
            choices.remove("stop")
        choice = self.chance.choice(choices)
        wanted = Wanted(FLOW, topic, row["partition"], row["kind"])
        self.world.show()
        with suppress(InputError):  # it was decided since
            resolve(self.world.deployment, wanted, choice)
        self.world.say(topic, f"decided {row['kind']} {row['partition']}: {choice}")

    def _forget(self, topic: str) -> None:
        if self.chance.random() < 0.3:
            offsets = {self.chance.randrange(20) for _ in range(3)}
            self.world.say(topic, f"forget {offsets}")
            self.world.forgets(topic, offsets)

    def _verify(self) -> None:
        world, chance = self.world, self.chance
        choice = chance.choice(
            (
                Choice(),
                Choice(),
                Choice(differing=False),
                Choice(again=True),
                Choice(first=chance.randrange(8)),
                Choice(last=chance.randrange(20)),
                Choice(first=chance.randrange(4), last=4 + chance.randrange(9), again=True),
            )
        )
        topics = [topic for topic in self.topics if chance.random() < 0.3]
        for topic in self.topics:
            world.say(topic, f"verify {choice} {'all' if not topics else topic in topics}")
        world.refresh()
        self.disturbed: set[str] = set()
        if chance.random() < 0.4:
            world.meanwhile = self._meanwhile
        only = topics if chance.random() < 0.5 else ()
        outcome = world.verify(only, choice)
        world.meanwhile = lambda: None
        world.refresh()
        if choice.first is None and choice.last is None:
            self._check_complete(outcome, set(only or self.topics) - self.disturbed)

    def _meanwhile(self) -> None:
        """While records are read that were there."""
        world, chance = self.world, self.chance
        some = [topic for topic in self.topics if chance.random() < 0.2]
        self.disturbed |= set(some)
        self.left_behind |= set(some)
        for topic in some:
            world.say(topic, "while it is compared:")
            for _ in range(chance.randrange(4)):
                what = chance.choice((self._lose, self._decide, self._target_again, self._look))
                what(topic)
                if chance.random() < 0.2:
                    self._records(topic)
                    world.land([topic])
                    world.produce([topic], chance)

    def _look(self, topic: str) -> None:
        """The flow polls."""
        self.world.look([topic])

    def _check_complete(self, outcome: Any, topics: set[str]) -> None:
        """What differs in nothing, and lacks nothing, has all."""
        world = self.world
        told = {row["topic"] for row in outcome.differences}
        told |= {row["topic"] for row in outcome.not_compared}
        current = world.current()
        for topic in sorted(topics - told):
            for part in world.of(topic):
                if part.unseen or part.spoilt:
                    continue
                generation = current.generation(part.key)
                wrong = world.wrong(*part.key, generation)
                there = {value for value in part.target.entries if value}
                excused = world._excused(part, generation, world.targets.newest(topic))
                lacking = [
                    at
                    for at, value in part.source.rows(0, part.source.end)
                    if value not in there and at not in excused
                ]
                assert not wrong and not lacking, world.shown(
                    topic, f"{part.key} is called complete: wrong {wrong}, lacks {lacking}"
                )
                self.complete += 1

    def _sample(self, topics: list[str]) -> None:
        """As a flow's control does."""
        world, rows = self.world, []
        floors = world.floors()
        current = world.current()
        for topic in topics:
            if self.chance.random() < 0.3 or topic not in world.usable:
                continue
            number = world.targets.newest(topic)
            for part in world.of(topic):
                position, generation = part.position, current.generation(part.key)
                here = position is not None and (position.generation, position.target_generation)
                floor = floors.get(part.key)
                of_living = floor is not None and floor.generation == generation
                reached = floor.next if of_living else 0
                mapped = floor.source if of_living and floor.target is not None else 0
                if here == (generation, number):
                    reached = max(reached, position.offset)
                for (gen, off), _ in part.written:
                    mapped = max(mapped, off + 1) if gen == generation else mapped
                if part.unmapped is not None:
                    continue
                is_all = (
                    here == (generation, number)
                    and position.offset >= part.landed[1]
                    and part.landed[0] == generation
                    and part.key not in world.blocked
                )
                rows.append(
                    {
                        "flow": FLOW,
                        "topic": topic,
                        "partition": part.key[1],
                        "sampled_at": datetime.now(timezone.utc),
                        "source_start": part.source.start,
                        "source_end": part.source.end,
                        "staged_end": part.landed[1],
                        "produced_end": max(reached, part.landed[1]) if is_all else reached,
                        "target_end": part.target.end,
                        "target_topic": f"east.{topic}",
                        "mapped_end": mapped,
                        "target_passed_end": part.target.end if is_all else None,
                        "target_generation": number,
                        "generation": generation,
                    }
                )
                world.say(topic, f"sample {rows[-1]}")
        if rows:
            world.lake.append("positions", rows_of("positions", rows))

    def check(self) -> None:
        self._check_proofs()
        self._check_status()
        self._check_translation()

    def _check_proofs(self) -> None:
        world = self.world
        self.proven: dict[Any, set[int]] = defaultdict(set)
        wrong: dict[Any, set[int]] = {}
        for row in world.lake.ask_table("proofs"):
            key = (row["topic"], row["partition"])
            part = world.parts[key]
            place = (*key, row["generation"])
            if row["proven"]:
                self.proven[place] |= set(range(row["first_offset"], row["last_offset"] + 1))
            if part.unseen or part.spoilt or not row["proven"]:
                continue
            self.checked += 1
            if place not in wrong:
                wrong[place] = world.wrong(*place)
            bad = {at for at in wrong[place] if row["first_offset"] <= at <= row["last_offset"]}
            assert not bad, world.shown(key[0], f"{row} is proven, and wrong: {bad}")

    def _check_status(self) -> None:
        world = self.world
        mapped: dict[str, int] = defaultdict(int)
        proven: dict[str, int] = defaultdict(int)
        for key, records in world._map_now.items():
            for generation, offset in records:
                mapped[key[0]] += 1
                proven[key[0]] += offset in self.proven[(*key, generation)]
        for row in world.lake.ask_table("proof_status"):
            topic = row["topic"]
            shown = (row["mapped_records"], row["proven_records"])
            if mapped[topic]:
                assert shown == (mapped[topic], proven[topic]), world.shown(
                    topic, f"{row}: {proven[topic]} of {mapped[topic]}"
                )
            else:
                assert not row["proven_records"], world.shown(topic, f"{row}, and nothing is there")

    def _check_translation(self) -> None:
        """Who reads on from where a position is called exact gets what it has not read, and nothing
        else; also what is produced later."""
        world = self.world
        current = world.current()
        self.floors = world.floors()
        parts = {}
        for key, part in world.parts.items():
            known = current.topics.get(key[0])
            if known is None or key[0] not in world.living or part.unseen or part.spoilt:
                continue
            if known.topic_id != part.source.topic_id or part.rewound is not None:
                continue
            parts[key] = part
        asked = [(*key, at) for key, part in parts.items() for at in range(part.source.end + 3)]
        translated = translate_all(world.lake.now, FLOW, asked)
        for (topic, number, position), there in translated.items():
            part = parts[topic, number]
            if there.exact:
                self.exact += 1
                self._check_forward(part, position, there.offset, current)
        asked = [
            (f"east.{topic}", number, at)
            for (topic, number), part in parts.items()
            for at in range(part.target.end + 3)
        ]
        translated = translate_all(world.lake.now, FLOW, asked, reverse=True)
        for (topic, number, position), there in translated.items():
            part = parts[topic.removeprefix("east."), number]
            if there.exact:
                self.exact += 1
                self._check_reverse(part, position, there)

    def _check_forward(self, part: Mirrored, position: int, there: int, current: Any) -> None:
        world, topic = self.world, part.key[0]
        places = {value: at for at, value in enumerate(part.target.entries) if value}
        generation = current.generation(part.key)
        wrong = []
        excused = world._excused(part, generation, world.targets.newest(topic))
        for at, value in enumerate(part.source.entries):
            if value is None:
                continue
            to = places.get(value)
            if to is not None and (at >= position) != (to >= there):
                wrong.append(f"{at} is at {to}")
            if to is None and at < position and at >= part.source.start and at not in excused:
                floor = self.floors.get(part.key)
                is_due = floor is None or (generation, at) >= (floor.generation, floor.next)
                if is_due and ((generation, at) in part.staged or at >= part.landed[1]):
                    wrong.append(f"{at} is still to come")
        living = set(part.source.entries)
        if part.key not in current.branches:
            wrong += [
                f"{value} of before is behind"
                for value, at in places.items()
                if value not in living and at >= there
            ]
        assert not wrong, world.shown(topic, f"{part.key} {position} to {there}: {wrong}")

    def _check_reverse(self, part: Mirrored, position: int, there: Any) -> None:
        world = self.world
        generation = there.generation
        if generation is None:
            return
        places = {value: at for at, value in enumerate(part.target.entries) if value}
        wrong = []
        for (gen, at), value in part.origin.items():
            to = places.get(value)
            if to is not None and gen == generation and (at >= there.offset) != (to >= position):
                wrong.append(f"{at} is at {to}")
        assert not wrong, world.shown(
            part.key[0], f"{part.key} {position} back to {there}: {wrong}"
        )


def drawn(directory: Path, chance: random.Random, steps: int = STEPS) -> Schedules:
    with pytest.MonkeyPatch.context() as patches:
        schedules = Schedules(ProvenWorld(directory, patches, TOPICS), chance)
        schedules.run(steps)
    return schedules


@pytest.mark.parametrize(
    "steps",
    [
        FEWER_STEPS,
        pytest.param(STEPS, marks=pytest.mark.wide("test_no_schedule_breaks_a_law_of_proofs")),
    ],
)
def test_no_schedule_breaks_a_law_of_proofs(tmp_path: Path, steps: int) -> None:
    schedules = drawn(tmp_path, random.Random(0), steps)
    assert min(schedules.checked, schedules.exact, schedules.complete) > 10
    assert schedules.put_back and schedules.topics
