"""What one setting of MirrorMaker means to mirrorlake."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | int | bool | list[str]


@dataclass(frozen=True)
class SettingOutcome:
    """One of: `fields` of the topology with their values, why it is not needed, why it is not
    supported. A list may be carried in part: then the last one says what of it is not. `notes` are
    about what is carried."""

    fields: Mapping[str, Value] = field(default_factory=dict)
    not_needed: str = ""
    not_supported: str = ""
    notes: tuple[str, ...] = ()
