"""What is said to operators when a source has lost records, or made a topic again."""

from collections.abc import Collection

from mirrorlake.core.survey import Loss
from mirrorlake.errors import SourceDataLost


def waiting(alias: str, topics: Collection[str]) -> SourceDataLost | None:
    """What an operator has to be reminded of: topics that wait, told by an earlier run."""
    if not topics:
        return None
    named = ", ".join(sorted(topics))
    return SourceDataLost(
        f"topics of cluster {alias} wait until you decide about lost records: {named}; see mirrorlake resolve",
        source=alias,
    )


def lost(alias: str, flow: str, loss: Loss) -> SourceDataLost:
    """What was lost, and what can be decided."""
    if loss.kind == "topic_recreated":
        said = f"topic {loss.topic} was deleted and made again at cluster {alias}, so its offsets begin anew"
        choice = "new-generation"
    else:
        said = (
            f"offsets {loss.first} to {loss.last} of {loss.topic}-{loss.partition} were gone at cluster {alias} before "
            "they were landed"
        )
        choice = "continue"
    return SourceDataLost(
        f"{said}; the topic waits until you decide: mirrorlake resolve --flow '{flow}' --topic '{loss.topic}' "
        f"--choice {choice} (or stop)",
        topic=loss.topic,
        partition=loss.partition,
        first_offset=loss.first,
        last_offset=loss.last,
    )
