"""Sending whole topics again: the part of an open lake that restores."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from threading import Event
from typing import TYPE_CHECKING, Any

from mirrorlake.config.topology_file import nearest
from mirrorlake.errors import InputError
from mirrorlake.extras import needs
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.library.flows import Opened
from mirrorlake.library.resend_answers import planned_answer, sent_answer, with_extras
from mirrorlake.library.resends import (
    ReportSent,
    answer_callback,
    check_clusters,
    counting,
    in_a_sentence,
)
from mirrorlake.library.resent import Resent
from mirrorlake.library.store_refusals import raises_lake_errors
from mirrorlake.naming.selection import matches_any

if TYPE_CHECKING:  # modules that need Spark are imported where they are used
    from mirrorlake.resend.cut import Moment
    from mirrorlake.resend.sender import SendOutcome
    from mirrorlake.resend.steps import PlannedResend


@raises_lake_errors
class Restores(Opened):
    """`OpenLake`'s method that restores topics."""

    def restore(
        self,
        source: str,
        target: str,
        topics: Sequence[str] = (),
        *,
        as_of: datetime | None = None,
        below: Mapping[tuple[str, int], int] | None = None,
        extras: Collection[str] = (),
        rename: str = "identity",
        compacted: bool = False,
        start_over: bool = False,
        dry_run: bool = False,
        report: ReportSent | None = None,
        answered: Callable[[Resent], None] | None = None,
        stop: Event | None = None,
    ) -> Resent:
        """Send whole topics from the stage to a cluster where they are empty or missing: the
        records as they were, in order, in the same partitions, each once, even if it is killed and
        called again. The source is not asked.

        Args:
            source: the cluster that the topics were read from; it may be gone.
            target: the cluster to create them on; the source's own alias to refill that cluster.
            topics: patterns of whole names; all topics of the lake if empty.
            as_of: a time: restore what the lake had by then, and later records with timestamps up
                to it. A source transaction is restored whole or not at all.
            below: by (topic, partition) the end offset, exclusive; a partition that is not named is
                restored whole.
            extras: some of "configs", "acls" and "groups", to restore too, as they were; groups
                resume exactly at their committed positions.
            rename: how to name topics at the target, like a flow's `policy`.
            compacted: only the last value of each key in a partition, and records without a key.
            start_over: start over, though the same restore has begun and not ended.
            dry_run: change nothing.
            report: called after each batch.
            answered: called with the answer once all is done, before the lake records that the
                restore has ended. Until then the same call answers again; after that it finds
                topics that hold records.
            stop: set it to end after the batch in hand; for None an interrupt does.

        Raises:
            InputError: the arguments do not fit, or a topic at the target holds records; nothing
                was done.
            LakeError: there is no lake.
            ClusterUnusable: the target does not answer.
            LeaseTaken: another process restores to the same cluster.
            ReplicationError: the target refused a topic or records.
        """
        from mirrorlake.library.replicating import stopping
        from mirrorlake.resend.extras import ALL

        with needs("spark"):
            from mirrorlake.resend.cut import RestoreRequest
            from mirrorlake.resend.restore import Restore

        if as_of is not None and below:
            raise InputError("name a time or offsets, not both")
        for name in extras:
            if name not in ALL:
                raise InputError(
                    f"{name} cannot be restored{nearest(name, ALL)}; what can is {', '.join(ALL)}"
                )
        known = self.internals
        check_clusters(known, source, target)
        offsets = dict(below or {})
        _check_selected(offsets, topics)
        until_ms = None if as_of is None else int(as_of.timestamp() * 1_000)
        words: dict[str, Any] = {} if until_ms is None else {"as_of_ms": until_ms}
        if offsets:
            words = {"below": [[*place, end] for place, end in sorted(offsets.items())]}
        asked = RestoreRequest(
            source,
            target,
            topics=tuple(topics) or (".*",),
            rename=rename,
            words=words,
            compacted=compacted,
            start_over=start_over,
            extras=frozenset(extras),
            until_ms=until_ms,
        )
        restore = Restore(known.deployment, StageFiles(known.tables), asked)

        def cut() -> "Moment":
            return restore.below(offsets) if until_ms is None else restore.as_of(until_ms)

        def answer(planned: "PlannedResend", outcome: "SendOutcome") -> Resent:
            sent, reached = sent_answer(planned, outcome), restore.reached(planned.resend)
            return with_extras(sent, outcome.extras, reached)

        if dry_run:
            planned = restore.plan(cut)
            done, reached = restore.plan_extras(planned.resend), restore.reached(planned.resend)
            return with_extras(planned_answer(planned), done, reached)
        on_sent = answer_callback(answered, answer)
        with stopping(stop) as ending, in_a_sentence("the restore"):
            planned, outcome = restore.run(cut, ending, counting(report), on_sent)
        return answer(planned, outcome)


def _check_selected(below: Mapping[tuple[str, int], int], topics: Sequence[str]) -> None:
    """Raise InputError for the end of a partition whose topic is not restored."""
    for topic, partition in below:
        if topics and not matches_any(topics, topic):
            raise InputError(
                f"{topic} is not restored, so no offset can be given for its partition "
                f"{partition}; name the topic too, or leave the offset out"
            )
