"""What an operator may choose for each kind of incident."""

from collections.abc import Mapping

from mirrorlake.control.acl_reports import LEFT
from mirrorlake.lake.decisions import ACCEPT, PARK, PRODUCE_AGAIN, READ_AGAIN
from mirrorlake.run.attention import no_decision

_OLDER = {
    PRODUCE_AGAIN: (
        "produce them from the stage once more, behind what the target has: those that it has "
        "already are there twice then, and positions lead to the second ones"
    ),
    "stop": "stop mirroring the partition",
}
#: The choices for each kind of incident, with their meaning. Others can only be acknowledged.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "topic_recreated": {
        "new-generation": (
            "mirror the new topic, from where its log begins now, behind the records of the old one"
        ),
        "stop": "stop mirroring the topic",
    },
    "source_truncated": {
        "continue": (
            "accept that the records are lost and go on at what is there, whatever is lost "
            "until then"
        ),
        "stop": "stop mirroring the partition",
    },
    "source_rewound": {
        "new-generation": (
            "go on with what the source has now, from where it differs, behind the "
            "records staged before"
        ),
        "stop": "stop mirroring the partition",
    },
    "target_refused": {
        "retry": "try the records again: the target was changed",
        "skip": "give up the refused records and go on behind them",
        PARK: (
            "go on behind the refused records, which wait in `parked` until `mirrorlake replay "
            "--parked` sends them"
        ),
        "stop": "stop mirroring the partition",
    },
    "target_lost": {
        PRODUCE_AGAIN: (
            "produce the lost records from the stage once more, behind what the target has"
        ),
        ACCEPT: "accept that the target lacks them and go on behind them",
        "stop": "stop mirroring the partition",
    },
    "position_lost": {
        "continue": (
            "what lies in the target behind the end of the map is not of this flow: "
            "produce on behind it"
        ),
        "stop": "stop mirroring the partition",
    },
    "map_behind": _OLDER,
    "map_unknown": _OLDER,
    "stage_trimmed": {
        READ_AGAIN: "read them from the source once more, as far as it still has them",
        "continue": (
            "accept that the flow never gets these records and go on at what the stage holds"
        ),
        "stop": "stop mirroring the partition",
    },
    "target_recreated": {
        "again": (
            "produce all that the stage holds once more, into the new topic; it is made if it "
            "is missing"
        ),
        "continue": (
            "go on in the new topic with what the old one never got; it is made if it is missing"
        ),
        "stop": "stop mirroring the topic",
    },
    LEFT: {
        "revoke": (
            "take away the ACLs that the flow made under another policy: who reads those "
            "mirrors loses access"
        ),
        "keep": "they stay, and the flow no longer owns them",
    },
}
_OTHERS = {"acknowledge": "close it: it is known, or over"}
#: For incidents that close by themselves.
_PASSING = {"acknowledge": "close it, if it is over: while its cause is there it is reported again"}


def choices_of(kind: str) -> Mapping[str, str]:
    """The choices for a kind of incident, with their meaning."""
    return CHOICES.get(kind, _OTHERS if no_decision(kind) is None else _PASSING)
