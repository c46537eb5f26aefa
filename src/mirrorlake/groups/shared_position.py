"""One position at the goal for a topic of two opposite flows: unread records stay unread. Pure.

Each flow maps only its records. A record that neither map has may lie anywhere behind their ends,
so a position lies beyond a map's end only where that flow has passed it.
"""

from dataclasses import dataclass, replace

from mirrorlake.offsets.positions import Translated


@dataclass(frozen=True)
class SharedPosition:
    """How each flow translates a position: `onward` brings records to the goal; `back` is the
    reversed map of the flow that brings records born at the goal to the origin."""

    onward: Translated
    back: Translated

    @property
    def end(self) -> int:
        """All read records of both flows lie before it, as far as they are mapped."""
        ends = (self.onward.offset, self.back.offset)
        return max(ends) if self.back.mapped else self.onward.offset

    @property
    def wanted(self) -> int:
        """The first mapped, unread record, or the end of all: the group continues here unless an
        unread record is not mapped yet. Records that come to the origin are appended to its log, so
        at the goal they lie behind all records of the goal that were read."""
        ahead = [one.offset for one in (self.onward, self.back) if one.ahead]
        return min(ahead) if ahead else self.end

    @property
    def may_lack_back(self) -> bool:
        """Whether the goal may have records in front of `wanted` that never came to the origin."""
        return not self.back.ahead

    @property
    def may_lack_onward(self) -> bool:
        """Whether unread records at the goal before `wanted`, even the first, may be unmapped."""
        return self.back.ahead and self.onward.offset < self.wanted

    def joined(self, primary: Translated, is_clear: bool) -> Translated:
        """Both as one position, with the other fields of `primary`, the named flow's; `is_clear`:
        no such records are missing."""
        bounds = [self.wanted]
        if not is_clear and self.may_lack_back:
            bounds.append(self.back.offset)
        if not is_clear and self.may_lack_onward:
            bounds.append(self.onward.offset)
        offset = min(bounds)
        return replace(
            primary,
            offset=offset,
            exact=self.onward.exact and self.back.exact and is_clear,
            ahead=self.onward.ahead or self.back.ahead or not is_clear,
            again=max(0, self.end - offset),
            gone=self.onward.gone + self.back.gone,
        )
