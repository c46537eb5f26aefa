"""What is to be restored, and as of when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirrorlake.lake.topic_states import TopicState
from mirrorlake.resend.cut import GenerationEnds


@dataclass(frozen=True)
class Moment:
    """A time of the source: up to where each topic had come, and how it was. `unproven` are topics
    of which it was not noted what it takes to say that no transaction of the source is restored in
    part."""

    ends: GenerationEnds
    states: Mapping[str, TopicState]
    unproven: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RestoreRequest:
    """What a restore is asked for: the topics of the cluster `source` that one of the patterns
    matches, named by a policy (as in a flow), to the cluster `target`, which may be the same one.

    `words` tell one cut from another, so that the same restore is known when it is asked for again;
    `start_over` begins a new one all the same. `compacted` restores the last value of each key
    only. `extras` are some of `extras.ALL`, and `until_ms` is the time as of which they are, None
    for now; neither tells one restore from another.
    """

    source: str
    target: str
    topics: tuple[str, ...] = (".*",)
    rename: str = "identity"
    words: Mapping[str, Any] = field(default_factory=dict)
    compacted: bool = False
    start_over: bool = False
    extras: frozenset[str] = frozenset()
    until_ms: int | None = None

    @property
    def request(self) -> dict[str, Any]:
        """What the same restore is known by."""
        return {
            "topics": list(self.topics),
            "rename": self.rename,
            "compacted": self.compacted,
            **self.words,
        }
