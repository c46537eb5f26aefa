"""Topics whose records the target refuses: a right was revoked, or the topic itself is refused. The
flow goes on without them, and resumes them once they may be written."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from mirrorlake.errors import TopicRefused
from mirrorlake.lake.incidents import IncidentKey, Incidents

logger = logging.getLogger(__name__)

#: How long a topic waits before it is tried again, unless rights still forbid it, seconds; longer
#: each time that it is refused again.
PAUSES = (5.0, 30.0, 120.0, 600.0)
#: Rights that a flow needs on a target topic: READ since a transaction commits its position on it.
NEEDED = frozenset({"READ", "WRITE"})
Rights = Callable[[Collection[str]], Mapping[str, frozenset[str] | None]]


class DeniedTopics:
    """The denied topics of one flow, each with an incident. `topics` has refusals by source topic.

    `rights` gives our rights on target topics, None for topics of which the cluster does not say.
    """

    def __init__(self, flow: str, incidents: Incidents, rights: Rights) -> None:
        self.topics: dict[str, TopicRefused] = {}
        self._flow = flow
        self._incidents = incidents
        self._rights = rights
        self._refused: dict[str, tuple[int, float]] = {}  # how often, and when last
        self._ends = False

    def add(self, refusals: Iterable[TopicRefused]) -> None:
        """Go on without topics from now on."""
        now = time.monotonic()
        fresh = {refusal.topic: refusal for refusal in refusals if refusal.topic not in self.topics}
        for topic in fresh:
            count, last = self._refused.get(topic, (0, now))
            self._refused[topic] = (1 if now - last > 2 * PAUSES[-1] else count + 1, now)
        errors = [
            TopicRefused(f"{error}; the flow goes on without it", topic=topic)
            for topic, error in fresh.items()
        ]
        self._incidents.open_all(self._flow, TopicRefused.incident_kind, errors)
        self.topics = dict(sorted({**self.topics, **fresh}.items()))

    def end(self) -> None:
        """Resume no topic from now on: the flow has ended, so none would be tried again."""
        self._ends = True

    def resume(self, names: Mapping[str, str]) -> None:
        """Go on with the topics that may be written again; `names` are target topics by source
        topic. Raises KafkaException when the cluster does not answer."""
        now = time.monotonic()
        due = {
            topic: names[topic]
            for topic in self.topics
            if topic in names and now >= self._due(topic) and not self._ends
        }
        if not due:
            return
        rights = self._rights(due.values())
        over = {topic for topic, name in due.items() if _suffice(rights.get(name))}
        for topic in sorted(over):
            logger.info(
                "flow %s: the target takes topic %s again, as far as it says", self._flow, topic
            )
        self._incidents.settle_all(
            (IncidentKey(self._flow, TopicRefused.incident_kind, topic) for topic in over),
            "the topic may be written again",
        )
        self.topics = {topic: error for topic, error in self.topics.items() if topic not in over}

    def _due(self, topic: str) -> float:
        count, last = self._refused[topic]
        return last + PAUSES[min(count, len(PAUSES)) - 1]


def _suffice(rights: frozenset[str] | None) -> bool:
    """Whether a topic may be written, as far as is known: no right at all is an answer, too."""
    return rights is None or rights >= NEEDED
