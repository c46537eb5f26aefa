"""What each part of an open lake stands on."""

from functools import cached_property

from mirrorlake.library.flows import Flows
from mirrorlake.library.internals import Internals


class Opened:
    """A lake as it was opened, and its flows."""

    def __init__(self, internals: Internals) -> None:
        self.internals = internals

    @cached_property
    def flows(self) -> Flows:
        """The flows by name: those of the topology file, or without one those that the lake
        knows."""
        return Flows(self.internals)
