"""Lists of regular expressions, as MirrorMaker reads them: one that Java and Python do not read
alike is left out by itself, with what to write for it."""

from collections.abc import Sequence

from mirrorlake.config.flow_reasons import normal
from mirrorlake.mm2.importer.entries import Entry
from mirrorlake.mm2.importer.setting_outcome import SettingOutcome, Value
from mirrorlake.naming.patterns import check_pattern, never_in_names, shared_form

_STRAY = (
    "{at} holds {pattern!r}, carried as it is, which matches no legal name: {char!r} is in none"
)
_HINTS = {
    "#": "; to Kafka a comment is a line of its own, so take what is behind the value away",
    " ": "; blanks within a pattern count",
    **dict.fromkeys("\"'", "; to Kafka quotes are part of the pattern, so take them away"),
}


def patterns_of(entry: Entry, key: str, patterns: Sequence[str]) -> SettingOutcome:
    """What a list becomes, with all of `patterns` that can be carried. A flow that would take more
    than MirrorMaker does, because of an exclusion that cannot, is paused."""
    left_out = {pattern: why for pattern in patterns if (why := check_pattern(pattern))}
    kept = [pattern for pattern in patterns if pattern not in left_out]
    fields: dict[str, Value] = {normal(key): kept}
    if left_out and key.endswith(".exclude"):
        fields["paused"] = True
    reasons = [_refusal(normal(key), pattern, why) for pattern, why in left_out.items()]
    notes = [] if key.startswith("groups") else [_note(entry, pattern) for pattern in kept]
    return SettingOutcome(
        fields, not_supported="; ".join(reasons), notes=tuple(note for note in notes if note)
    )


def _refusal(name: str, pattern: str, why: str) -> str:
    shared = shared_form(pattern)
    instead = f"write {shared!r} into {name}" if shared else f"write another one into {name}"
    paused = " and take paused away, which is set because less is excluded without it"
    return f"{pattern!r} is left out: {why}; {instead}{paused if 'exclude' in name else ''}"


def _note(entry: Entry, pattern: str) -> str:
    char = never_in_names(pattern)
    if char is None:
        return ""
    hint = next((_HINTS[sign] for sign in "#\"' " if sign in pattern), "")
    return _STRAY.format(at=entry.at, pattern=pattern, char=char) + hint
