"""Replays and restores that have begun and not ended: their unsent records must stay staged."""

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.retention import ConsumingFlow
from mirrorlake.lake.table_upkeep import flow_floors
from mirrorlake.resend.note import Kind, Resend, read_notes

_KINDS: tuple[Kind, ...] = ("replay", "restore")


def waiting_resends(lake: Lake) -> list[ConsumingFlow]:
    """All, as readers of the stage. A given-up one was replaced (`--start-over`)."""
    begun = [resend for kind in _KINDS for resend in read_notes(lake.ask("resends", kind=kind))]
    return [_reader(lake, resend) for resend in begun]


def _reader(lake: Lake, resend: Resend) -> ConsumingFlow:
    names = resend.names
    within = {one.place: (one.first, one.last) for one in resend.ranges}
    floors = flow_floors(lake, resend.name, names.get)
    return ConsumingFlow(resend.name, resend.source, names.__contains__, floors, within=within)
