"""A finding of `mirrorlake.checks.rules`: a refusal of flows or of one topic, or a note. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mirrorlake.errors import some_of

Severity = Literal["refuse", "note"]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong (`refuse`) or worth knowing (`note`).

    A refusal without a `topic` concerns its flows: none of them may start. With a `topic`, a topic
    of the source, the named flow leaves that topic out and mirrors the others. `subject` is what it
    concerns: a cluster id, a topic, a setting. `sentence` says what is wrong, `fix` what to do;
    neither ends with a full stop. A note needs no fix.
    """

    rule: str
    severity: Severity
    flows: tuple[str, ...]
    subject: str
    sentence: str
    fix: str = ""
    topic: str | None = None

    def __str__(self) -> str:
        """Sentence and fix, for an operator."""
        return f"{self.sentence}; {self.fix}" if self.fix else self.sentence


def one_of_them(names: Iterable[str]) -> str:
    """The first of some names, and how many others there are, as `orders (and 2 others)`."""
    return some_of([*names], 1, " (and {:,} others)")


def refused_flows(problems: Iterable[Problem]) -> dict[str, Problem]:
    """Flows that must not start, each with its first reason."""
    by_flow: dict[str, Problem] = {}
    for problem in problems:
        if problem.severity == "refuse" and problem.topic is None:
            for flow in problem.flows:
                by_flow.setdefault(flow, problem)
    return by_flow


def left_out(problems: Iterable[Problem], flow: str) -> dict[str, Problem]:
    """Source topics that a flow must not mirror, each with its first reason."""
    by_topic: dict[str, Problem] = {}
    for problem in problems:
        if problem.severity == "refuse" and problem.topic is not None and flow in problem.flows:
            by_topic.setdefault(problem.topic, problem)
    return by_topic
