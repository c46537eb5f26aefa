"""The table `states`: how topics of the source clusters were from a time on."""

import threading
from collections.abc import Mapping
from datetime import datetime, timezone

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.topic_states import TopicState


class States:
    """The states of a lake; the threads of a process share it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known: dict[str, dict[str, TopicState]] = {}
        self._use = threading.RLock()

    def of(self, cluster: str, fresh: bool = False) -> Mapping[str, TopicState]:
        """How each topic of a cluster was last; `fresh` also knows what other processes noted since."""
        with self._use:
            if fresh or cluster not in self._known:
                rows = self._lake.ask("newest_states", cluster=cluster)
                self._known[cluster] = {
                    row["topic"]: TopicState(
                        row["partitions"], row["factor"], dict(row["configs"] or {}), row["topic_id"]
                    )
                    for row in rows
                }
            return dict(self._known[cluster])

    def note(self, cluster: str, found: Mapping[str, TopicState]) -> None:
        """Note those that are other than they were."""
        with self._use:
            known = self.of(cluster)
            fresh = {topic: state for topic, state in found.items() if known.get(topic) != state}
            now = datetime.now(timezone.utc)
            rows = [
                {
                    **vars(state),
                    "cluster": cluster,
                    "topic": topic,
                    "since": now,
                    "configs": list(state.configs.items()),
                }
                for topic, state in fresh.items()
            ]
            self._lake.append("states", rows_of("states", rows))
            self._known[cluster].update(fresh)
