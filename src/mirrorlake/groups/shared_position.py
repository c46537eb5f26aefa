"""A position on a topic that two opposite flows share, as one position at the goal: what is unread
stays unread. Pure.

Each flow maps the records of its own kind alone. What both maps lack may lie anywhere behind their
ends, so a position is beyond one of them only where that flow is known to be beyond it as well.
"""

from dataclasses import dataclass, replace

from mirrorlake.offsets.positions import Translated


@dataclass(frozen=True)
class SharedPosition:
    """What each flow says of a position: `onward` brings records to the goal, and `back` is by the
    map, read backwards, of the one that brings those born at the goal to the origin."""

    onward: Translated
    back: Translated

    @property
    def end(self) -> int:
        """All that was read, of either kind, lies before it, as far as it is mapped."""
        ends = (self.onward.offset, self.back.offset)
        return max(ends) if self.back.mapped else self.onward.offset

    @property
    def wanted(self) -> int:
        """The first record that is mapped and unread, or behind all: where the group reads on
        unless something unread is not mapped yet. What comes to the origin is behind all that was
        there, so it comes to the goal behind all records of the goal that were read."""
        ahead = [one.offset for one in (self.onward, self.back) if one.ahead]
        return min(ahead) if ahead else self.end

    @property
    def may_lack_back(self) -> bool:
        """Whether records of the goal may lie in front of `wanted` that never came to the
        origin."""
        return not self.back.ahead

    @property
    def may_lack_onward(self) -> bool:
        """Whether records may have come to the goal in front of `wanted`, unread, that are not
        mapped yet, also the first ones ever."""
        return self.back.ahead and self.onward.offset < self.wanted

    def joined(self, primary: Translated, is_clear: bool) -> Translated:
        """As one position, beside what the flow that was named says; `is_clear`: no records are
        there that may be lacking."""
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
